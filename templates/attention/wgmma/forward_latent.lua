-- forward_latent.lua: how wgmma_forward takes wide heads whose values are the first columns of their keys. The rows of a tile are
-- those of all query heads of a key/value head, so that its keys are read once, and K lies in shared memory once for both products.
-- Two tiles of keys are there. Each of two warpgroups makes S and P of one of them and tells the other P, by shared memory, and has half
-- of O's columns: while one makes weights the other multiplies. A third one moves data. Blocks divide all keys as decode's do, and
-- join their parts.
local latent = { template = "attention/wgmma/forward_latent.cut", ROWS = 64 }
local shape, mma, barriers = run("attention/wgmma/shape.lua"), run("attention/mma/mma.lua"), run("tile/barriers.lua")
local kinds_of_barriers = run("attention/wgmma/forward_latent_barriers.lua")
local SIDES, TILES, KEYS = 2, 2, 64 -- warpgroups that multiply; tiles of so many keys
local PIECE = KEYS * shape.ROW -- bytes of 64 columns of a tile
-- MULTIPROCESSORS: of a Hopper GPU; a launch has a block for each. SPAN_KEYS: keys that a cluster takes of a tile of rows at least, where
-- others are to have the rest. LINE_PLACES: tiles of rows, or groups of them, whose place in the line is kept in shared memory.
local MULTIPROCESSORS, SPAN_KEYS, LINE_PLACES = 132, 512, 128

-- Where V's columns are not two halves of whole pieces, and no piece of K is left for P, latent keys are taken as others are. Rows of a
-- tile have different heads, and the keys of a part may not depend on other sequences where bits do not.
function latent.is_for(spec)
  local differs_by_head = hooks.uses("h") or hooks.uses("hk")
  local is_more = hooks.norm.beside or hooks.norm.drop or hooks.max_logit or seq.slices or seq.shard or spec.batch_invariant == "true"
  return spec.latent == "true" and shape.is_wide and spec.dv % 128 == 0 and shape.blocks(spec.d) > shape.blocks(spec.dv) and not differs_by_head and not is_more
end

-- Is the plan one of these?
function latent.has(plan) return plan.block_kv == KEYS and plan.stages == TILES end

local function cluster(plan) return plan.block_q // latent.ROWS end
function latent.is_alone(plan) return cluster(plan) == 1 end
local function keys_of_block(plan) return KEYS // cluster(plan) end -- that a block fetches for its cluster
local function tile_bytes(spec) return shape.blocks(spec.d) * PIECE end
local function job_bytes() return 64 + 16 * cdiv(#seq.locals, 4) end

-- Does a step of the rows' states change what O is multiplied by?
function latent.moves() return hooks.norm.has_correction and not hooks.score.cap_of_ranges end
-- Four numbers each that a thread tells of its two rows: states, and what O is multiplied by.
function latent.told_chunks() return cdiv(2 * #hooks.norm.state + (latent.moves() and 2 or 0), 4) end
local function part_floats(spec) return 128 * (spec.dv // 4 + 4 * shape.state_chunks()) end

function latent.shared(spec, plan)
  local blocks = {
    { "SM_Q", shape.rows_bytes(latent.ROWS, spec.d), "Q [K_PIECES][64][64]" },
    { "SM_K", TILES * tile_bytes(spec), "K of two tiles [2][K_PIECES][64][64], and in each one's last piece P [64][64]" },
    { "SM_TOLD", TILES * 128 * 16 * latent.told_chunks(), "what a warpgroup's threads tell those of the other one of their rows [2][128]" },
    barriers.row(kinds_of_barriers { pieces = shape.blocks(spec.d), cluster = cluster(plan) }),
    { "SM_JOBS", 2 * job_bytes(), "q0, q_end, first head, heads; b, g, last k0, tiles; shares, place, first, second place; their step [2]" },
    { "SM_LINE", 4 * (LINE_PLACES + 1), "where in the line of keys tiles of rows begin [LINE_PLACES + 1]" },
    { "SM_LAST", 16, "whether a warpgroup is the last one to come to a tile of rows [2]" },
  }
  if seq.is_paged() then blocks[#blocks + 1] = { "SM_BOXES", 4 * keys_of_block(plan), "where boxes of a tile begin [KEYS / CLUSTER]" } end
  blocks[#blocks + 1] = { "SM_END", 1008, "what rounding the base to 1024 bytes may take" }
  return blocks
end

-- Registers of the threads of the warpgroup that moves data and divides the keys, and of the others.
local FEW, MANY = 56, 224
function latent.most() return MANY end

-- Registers of a thread that multiplies, coarsely: O, S, P, the rows' states and addresses.
function latent.registers(spec) return spec.dv // 4 + KEYS // 2 + KEYS // 4 + 28 end

-- Plans that compilers refuse, because they spill (forward_refused.lua says what a row is).
local function row(cause, what, when, spilled)
  return { cause = cause, what = what .. ", latent keys", spare = 255, spilled = spilled,
           when = function(spec, plan, traits) return latent.has(plan) and when(traits) end }
end
local function reads_by_key(traits) return traits.input.differs_by_pair or traits.input.differs_by_key end
latent.refused = {
  compiler = "NVRTC 13.0",
  rows = {
    row("score", "tanh", function(traits) return traits.score.has_tanh or traits.score.cap_of_ranges ~= nil end,
        { { "d 576/512, softcap(30.0)", 72 }, { "d 576/512, causal, softcap(30.0)", 76 } }),
    row("mask", "a mask with gaps, or of more than a range of keys for a row", function(traits) return traits.mask.has_gaps.keys or not traits.mask.row_sees_a_range end,
        { { "d 576/512, chunked(48)", 16 }, { "d 576/512, k <= p || k < 16, s * s, paged", 16 } }),
    row("input", "an input by key or pair beside a mask", function(traits) return reads_by_key(traits) and traits.mask.edge_count > 0 end,
        { { "d 576/512, causal, s + x[q, k]", 20 }, { "d 576/512, causal, s + x[k]", 16 } }),
  },
}

latent.plans = {
  { block_q = 128, block_kv = KEYS, stages = TILES, warps = 12, work = 66, measured = {} },
  { block_q = 64, block_kv = KEYS, stages = TILES, warps = 12, work = 80, measured = {} },
}

-- Pieces of K whose products one sum in float32 takes: as many in each, of 256 columns at most.
local function pieces_of_sum(spec)
  local pieces = shape.blocks(spec.d)
  return cdiv(pieces, cdiv(pieces, 4))
end

-- Expressions of the recipe: about how many tiles of rows all key/value heads have.
local function row_tiles(plan)
  if seq.is_packed("q") then return string.format("(cdiv(tokens_q * h, %d) + b * hk)", plan.block_q) end
  return string.format("b * hk * cdiv(nq * h, max(1, hk) * %d)", plan.block_q)
end

-- work_of_key: a block's work for a key and its rows, as text.
function latent.describe(spec, plan, work_of_key)
  local blocks, all, groups = cluster(plan), row_tiles(plan), SIDES * cluster(plan)
  local keys, most = seq.is_packed("k") and "tokens_k" or "nk", MULTIPROCESSORS // blocks
  local clusters = string.format("min(%s * max(1, cdiv(%s, %d)), %d)", all, keys, SPAN_KEYS, most)
  local function map(name, rows)
    return { name = name, tensor = "k", columns = 64, rows = rows, swizzle = shape.ROW, ragged = seq.is_ragged("k") }
  end
  return {
    about = string.format("O = %s(score(scale Q K^T)) V%s, V in K.", hooks.norm.about, hooks.norm.second_in_words),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }),
    outputs = hooks.norm.outputs,
    regions = { { name = "claims", count = string.format("2 * %s * %d", clusters, 2 * groups) },
                { name = "parts", count = string.format("2 * %s * %d", clusters, groups * part_floats(spec)) } },
    maps = { map("k_map", keys_of_block(plan)), seq.is_paged() and map("k_row_map", 1) or nil },
    steps = {
      { entry = "attn_fwd", grid = { string.format("%s * %d", clusters, blocks), "1", "1" }, threads = 32 * plan.warps, cluster = blocks,
        registers = 65536 // (32 * plan.warps) // 8 * 8, early = true, resident = 1,
        work = string.format("max(%d, %s * %s / %d) * %s / 10", SPAN_KEYS, hooks.mask.keys_seen, all, most, work_of_key) },
    },
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v, the first columns of k, and of o" },
      { "CLUSTER", blocks, "blocks, of 64 rows each" },
      { "BLOCK_Q", plan.block_q, "rows of a cluster, of all query heads of a key/value head" },
      { "BLOCK_KV", KEYS, "keys of a tile" },
      { "BLOCK_KEYS", keys_of_block(plan), "of them, which a block fetches" },
      { "THREADS", 32 * plan.warps, "of a block" },
      { "MOVER_THREADS", 128, "of them" },
      { "MOVER_REGISTERS", FEW },
      { "REGISTERS", MANY },
      { "GROUPS", groups, "warpgroups of a cluster, which have parts of their own" },
      { "DV_COLUMNS", spec.dv // SIDES, "columns of O that a warpgroup has" },
      { "DV_PIECES", shape.blocks(spec.dv // SIDES), "pieces of K that they are" },
      { "K_PIECES", shape.blocks(spec.d), "of 64 columns, of a tile" },
      { "PIECES_OF_SUM", pieces_of_sum(spec), "of them that one sum in float32 takes" },
      { "D_REST", shape.columns(spec.d) - 64 * (shape.blocks(spec.d) - 1), "columns of the last one that are multiplied" },
      { "PIECE_BYTES", PIECE, "of 64 columns" },
      { "TILE_BYTES", tile_bytes(spec), "of K" },
      { "JOB_BYTES", job_bytes(), "of what is known of a job" },
      { "TOLD_BYTES", 128 * 16 * latent.told_chunks(), "that a warpgroup tells of a tile" },
      { "PART_FLOATS", part_floats(spec), "of a warpgroup's part" },
      { "LINE_PLACES", LINE_PLACES, "tiles of rows, or groups of them, whose begin in the line is kept" },
      { "SPAN", SPAN_KEYS // KEYS, "tiles of keys of a part of few, at least" },
      { "BLOCKS_MOST", most, "clusters that have places for parts" },
    },
    shared = latent.shared(spec, plan),
    template = latent.template,
  }
end

return latent
