-- forward_wide.lua: how wgmma_forward takes heads wider than 256, of which no warpgroup can hold O. Two warpgroups share 64 rows:
-- each makes S and P of half of a tile's keys and tells the other P through shared memory, and has half of O's columns. A third one
-- moves data: K and V come in pieces, each of which all blocks of a cluster, of other rows, fetch a part of for all of them.
local wide = { template = "attention/wgmma/forward_wide.cut", ROWS = 64, SIDES = 2 }
local shape, mma, barriers = run("attention/wgmma/shape.lua"), run("attention/mma/mma.lua"), run("tile/barriers.lua")
local kinds_of_barriers = run("attention/wgmma/forward_wide_barriers.lua")
local PIECE_COLUMNS = 64 -- of K, in a piece

function wide.is_for() return shape.is_wide end

-- Why a spec has no kernel, nil: it has one.
function wide.refusal()
  if hooks.norm.beside then return "leaves heads wider than 256 to mma where a second accumulator stands beside O" end
  if seq.is_paged() then return "leaves heads wider than 256 to mma where keys lie in pages" end
  if seq.slices then return "leaves heads wider than 256 to mma where pairs are of slices" end
end

-- Blocks of a cluster, each of 64 rows.
local function cluster(plan) return plan.block_q // wide.ROWS end
function wide.is_alone(plan) return cluster(plan) == 1 end
-- Columns of O that a warpgroup has, and blocks of 64 of them.
local function o_columns(spec) return types.q.k_step * cdiv(spec.dv, wide.SIDES * types.q.k_step) end
local function o_blocks(spec) return shape.blocks(o_columns(spec)) end
-- Bytes of a piece of K, 64 columns of all keys of a tile; of a piece of V, all columns of so many keys that they are about as many
-- bytes; and of a slot.
local function k_piece_bytes(plan) return plan.block_kv * shape.ROW end
local function keys_of_piece(spec, plan)
  local keys = plan.block_kv
  while keys > types.q.k_step and wide.SIDES * o_blocks(spec) * keys * shape.ROW > k_piece_bytes(plan) do keys = keys // 2 end
  return keys
end
local function v_piece_bytes(spec, plan) return wide.SIDES * o_blocks(spec) * keys_of_piece(spec, plan) * shape.ROW end
local function slot_bytes(spec, plan) return math.max(k_piece_bytes(plan), v_piece_bytes(spec, plan)) end

-- Do both sides' keys of a tile lie in one block of 64?
function wide.sides_share_a_block(plan) return plan.block_kv == 64 end

function wide.shared(spec, plan)
  local blocks = {
    { "SM_Q", shape.rows_bytes(wide.ROWS, spec.d), "Q [D / 64][64][64]" },
    { "SM_P", 2 * shape.rows_bytes(wide.ROWS, plan.block_kv), "P of two tiles [2][KEYS / 64][64][64]" },
    { "SM_PIECES", plan.stages * slot_bytes(spec, plan), "of K [KEYS][64], and of V [DV / 64][PIECE_KEYS][64] [STAGES]" .. (shape.o_leaves_by_registers and "" or ", then O [DV / 64][64][64]") },
    { "SM_PAIRS", 512, "what two warps tell each other of their rows [2][2][32]" },
    barriers.row(kinds_of_barriers { pieces = plan.stages, cluster = cluster(plan) }),
  }
  if hooks.norm.drop then blocks[#blocks + 1] = { "SM_SEED", 16, "seed and offset of dropout" } end
  blocks[#blocks + 1] = { "SM_END", 1008, "what rounding the base to 1024 bytes may take" }
  return blocks
end

-- Registers of the threads of the warpgroup that moves data, and of the others.
local FEW, MANY = 24, 240
function wide.most() return MANY end

-- Registers of a thread that multiplies, coarsely: O, S, P, the rows' states and addresses.
function wide.registers(spec, plan)
  local scores = plan.block_kv // (2 * wide.SIDES)
  return o_columns(spec) // 2 + scores + scores // 2 + 28
end

-- Plans that compilers refuse, because they spill: of the most columns, beside 64 keys of a side (forward_refused.lua says what a row is).
local function has_most(spec, plan) return o_columns(spec) > 208 and plan.block_kv > 64 end
local function row(cause, what, when, spilled)
  return { cause = cause, what = what .. ", more than 416 columns of V and 128 keys", spare = 255, spilled = spilled,
           when = function(spec, plan, traits) return has_most(spec, plan) and when(traits) end }
end
local function reads_by_key(traits) return traits.input.differs_by_pair or traits.input.differs_by_key end
wide.refused = {
  compiler = "NVRTC 13.0",
  rows = {
    { cause = "widths", what = "more than 512 columns of K, whose S comes in three parts, and 128 keys", spare = 255,
      when = function(spec, plan) return spec.d > 512 and plan.block_kv > 64 end,
      spilled = { { "d 576/512, full", 768 }, { "d 576/512, causal, softcap(30.0)", 768 } } },
    row("score", "an input by key or pair beside a mask", function(traits)
      return reads_by_key(traits) and not traits.input.differs_by_distance and (traits.mask.edge_count > 0 or not traits.mask.row_sees_a_range)
    end, { { "d 512, causal, a dense bias", 316 }, { "d 512, causal, a bias by key", 208 } }),
    row("mask", "a mask of two bounds or with gaps", function(traits) return traits.mask.edge_count > 1 or traits.mask.has_gaps.keys == true end,
        { { "d 512, window(100, 7) or chunked(48)", 12 } }),
    row("dropout", "dropout", function(traits) return traits.norm.drop ~= nil end, { { "d 512, causal", 12 } }),
    row("max_logit", "the largest product beside a mask", function(traits) return traits.max_logit and traits.score.is_s and traits.mask.edge_count > 0 end,
        { { "d 512, causal", 12 } }),
    row("layout", "parts of sequences", function() return seq.shard ~= nil end, { { "d 512, causal", 12 } }),
  },
}

-- The plans in order of preference, as forward_plans.lua has them.
wide.plans = {
  { block_q = 128, block_kv = 128, stages = 8, warps = 12, work = 80,
    measured = { { "d 320, full, n 8192", 361 }, { "d 320, causal, n 8192", 353 }, { "d 384, full, n 8192", 411 }, { "d 384, causal, n 8192", 406 },
                 { "d 512, full, n 8192", 440 }, { "d 512, causal, n 8192", 458 }, { "d 512, full, one head of K, n 8192", 457 }, { "d 512, full, packed, n 8192", 438 } } },
  { block_q = 64, block_kv = 128, stages = 8, warps = 12, work = 112,
    measured = { { "d 320, full, n 8192", 260 }, { "d 384, full, n 8192", 304 }, { "d 512, full, n 8192", 315 }, { "d 512, causal, n 8192", 325 } } },
  { block_q = 128, block_kv = 64, stages = 8, warps = 12, work = 120 }, -- S in few registers
}

-- Pieces of K whose products one sum in float32 takes: as many in each, of 256 columns at most.
local function pieces_of_sum(spec)
  local pieces = shape.blocks(spec.d)
  return cdiv(pieces, cdiv(pieces, 4))
end

-- work_of_key: a block's work for a key and its rows, as text.
function wide.describe(spec, plan, work_of_key)
  local blocks, keys = cluster(plan), keys_of_piece(spec, plan)
  local function map(name, tensor, rows)
    return { name = name, tensor = tensor, columns = 64, rows = rows, swizzle = shape.ROW, ragged = seq.is_ragged(tensor) }
  end
  local maps = { map("q_map", "q", wide.ROWS), map("k_map", "k", plan.block_kv // blocks), map("v_map", "v", keys) }
  if not shape.o_leaves_by_registers then maps[#maps + 1] = map("o_map", "o", wide.ROWS) end
  local tiles = string.format("%s * h * %s", seq.count_tiles("q", plan.block_q), seq.batches("q"))
  return {
    about = string.format("O = %s(score(scale Q K^T)) V%s.", hooks.norm.about, hooks.norm.second_in_words),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }),
    outputs = hooks.norm.outputs,
    regions = {},
    maps = maps,
    steps = {
      { entry = "attn_fwd", grid = { string.format("%s * %d", tiles, blocks), "1", "1" }, threads = 32 * plan.warps, cluster = blocks,
        registers = 65536 // (32 * plan.warps) // 8 * 8, early = true,
        work = string.format("(%s + %d) * %s / 10", hooks.mask.keys_seen, hooks.mask.edge_count * (plan.block_q + plan.block_kv) // 2, work_of_key) },
    },
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v and o" },
      { "CLUSTER", blocks, "blocks, of 64 query rows each" },
      { "BLOCK_Q", plan.block_q, "query rows of a cluster" },
      { "KEYS", plan.block_kv, "of a tile" },
      { "BLOCK_KV", plan.block_kv // wide.SIDES, "of a warpgroup's S" },
      { "STAGES", plan.stages, "pieces of K and of V in flight" },
      { "THREADS", 32 * plan.warps, "of a block" },
      { "MOVER_REGISTERS", FEW },
      { "REGISTERS", MANY },
      { "DV_COLUMNS", o_columns(spec), "columns of O that a warpgroup has" },
      { "DV_BLOCKS", o_blocks(spec), "of 64 of them, of V" },
      { "K_PIECES", shape.blocks(spec.d), "of 64 columns, of a tile" },
      { "PIECES_OF_SUM", pieces_of_sum(spec), "of them that one sum in float32 takes" },
      { "D_REST", shape.columns(spec.d) - PIECE_COLUMNS * (shape.blocks(spec.d) - 1), "columns of the last one that are multiplied" },
      { "PIECE_KEYS", keys, "of a piece of V" },
      { "V_PIECES", plan.block_kv // keys, "of a tile" },
      { "K_PIECE_BYTES", k_piece_bytes(plan), "of a piece of K" },
      { "V_PIECE_BYTES", v_piece_bytes(spec, plan), "of a piece of V" },
      { "SLOT_BYTES", slot_bytes(spec, plan), "that a piece may have" },
      { "P_BYTES", shape.rows_bytes(wide.ROWS, plan.block_kv), "of a tile" },
    },
    shared = wide.shared(spec, plan),
    template = wide.template,
  }
end

return wide
