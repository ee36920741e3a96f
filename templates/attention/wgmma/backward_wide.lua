-- backward_wide.lua: how wgmma_backward takes heads wider than 128, of which no warpgroup can hold both dK and dV. A cluster of
-- two blocks has block_kv keys, 64 for each block. A block has four warpgroups: the first moves data, the second makes S, P and
-- dV, the third dP, dS and dK, the fourth dQ of half of the columns from the keys of both blocks, which send each other their dS.
local wide = { template = "attention/wgmma/backward_wide.cut", CLUSTER = 2, KEYS = 64 }
local DS_SLOTS = 2 -- tiles of dS in flight
local shape, barriers = run("attention/wgmma/shape.lua"), run("tile/barriers.lua")
local kinds_of_barriers = run("attention/wgmma/backward_wide_barriers.lua")

function wide.is_for(spec) return math.max(spec.d, spec.dv) > 128 end

-- Why such a score has no kernel, nil: it has one. The warps that make dS have P rounded, and no S: where dS does not follow from P
-- they have P times the score's slope in its place.
function wide.refusal()
  if hooks.norm.drop then return "leaves heads wider than 128 to mma where weights are dropped" end
  if hooks.ds_follows_from_p and hooks.norm.ds_is_proportional then return nil end
  if not hooks.norm.ds_is_proportional then return "leaves heads wider than 128 to mma where dS is not proportional to P" end
  if #hooks.input.grads > 0 then
    return "leaves heads wider than 128 to mma where an input of a score that is more than s and terms beside it has a gradient"
  end
end

-- Blocks of 64 columns of a tile, one at least for each block of the cluster, and how many of them the first one fetches.
local function blocks(width) return math.max(wide.CLUSTER, shape.blocks(width)) end
local function first_blocks(width) return cdiv(blocks(width), wide.CLUSTER) end
local function bytes(rows, width) return rows * shape.ROW * blocks(width) end
-- Columns that are multiplied: those of the first blocks, and the rest.
local function first_columns(width) return 64 * first_blocks(width) end
local function rest_columns(width) return math.max(types.q.k_step, shape.columns(width) - first_columns(width)) end

-- Columns of dQ that a block makes, of all that tiles have, and at a time, at most: pieces do not cross blocks of 64 columns.
local function dq_half(spec) return 64 * blocks(spec.d) // wide.CLUSTER end
local function dq_columns(spec, switches) return (dq_half(spec) % 64 == 0 or switches.has_unequal_pieces_of_dq) and 64 or 32 end

-- Does a block's half of dQ's columns end within a block of 64?
function wide.halves_a_block(spec) return dq_half(spec) % 64 > 0 end

-- The pieces of that half: how many columns, from which one on, as text, and what the names of their products end in. Where pieces
-- are whole blocks of 64 columns, and the halves share a block, the half of this block is the last piece.
function wide.pieces_of_dq(spec, switches)
  local half, columns, pieces = dq_half(spec), dq_columns(spec, switches), {}
  -- spot "wgmma.backward_wide.pieces"
  local first = half % columns > 0 and "(DQ_HALF + 32) * rank" or "DQ_HALF * rank"
  for i = 0, half // columns - 1 do
    pieces[#pieces + 1] = { columns = columns, first = string.format("%s + %d * DQ_COLUMNS", first, i), suffix = "" }
  end
  if half % columns > 0 then
    -- spot "wgmma.backward_wide.last_piece"
    pieces[#pieces + 1] = { columns = half % columns, first = "DQ_HALF - 32 + 32 * rank", suffix = "_rest" }
  end
  return pieces
end

-- Tiles of dO in flight. switches: those that are on, nil where a plan that has none is asked for.
local function do_slots(switches) return switches and switches.has_two_tiles_of_do and 2 or 1 end

function wide.shared(spec, plan, switches)
  local q, keys, stages, slots = plan.block_q, wide.KEYS, plan.stages, do_slots(switches)
  local is_ordered = spec.deterministic == "true"
  local list = {
    { "SM_K", bytes(keys, spec.d), "K [D / 64][64][64]" },
    { "SM_OTHER_K", cdiv(dq_half(spec), 64) * keys * shape.ROW, "the other block's K, columns of this block's dQ [..][64][64]" },
    { "SM_V", bytes(keys, spec.dv), "V [DV / 64][64][64]" .. (types.dv.name == "f32" and "" or ", then dV") },
    { "SM_Q", stages * bytes(q, spec.d), "Q [STAGES][D / 64][BLOCK_Q][64]" .. (types.dk.name == "f32" and "" or ", then dK") },
    { "SM_DO", slots * bytes(q, spec.dv), "dO [DO_SLOTS][DV / 64][BLOCK_Q][64]" },
    { "SM_DS", DS_SLOTS * wide.CLUSTER * q * shape.ROW, "dS of each block's keys [DS_SLOTS][2][BLOCK_Q][64]" },
    { "SM_P", stages * q * shape.ROW, "P^T, as operands of warps [STAGES][BLOCK_Q / 16][128][4]" },
    { "SM_KEPT", stages * q * 8, "what is kept of a row, and delta [STAGES][BLOCK_Q][2], float32" },
    barriers.row(kinds_of_barriers { stages = stages, do_slots = slots, ds_slots = DS_SLOTS, claims = is_ordered }),
  }
  if is_ordered then list[#list + 1] = { "SM_JOB", 16, "number of the cluster's job, -, -, -" } end
  list[#list + 1] = { "SM_END", 1008, "what rounding the base to 1024 bytes may take" }
  return list
end

-- Registers of the threads of each warpgroup, 512 together: those that move data, make dV, make dK, make dQ. Those that make dK
-- also make the gradients of inputs, of which dense ones take an address for each pair.
local LEAST = 208
local function split()
  local dense = false
  for _, x in ipairs(hooks.input.grads) do dense = dense or x.kind == "dense" end
  return { mover = dense and 24 or 32, values = LEAST, keys = dense and LEAST + 8 or LEAST, queries = 64 }
end
function wide.most() return LEAST end

-- Registers of a thread that makes dV or dK, coarsely: that, S or dP, P or dS, and addresses.
function wide.registers(spec, plan)
  return math.max(shape.columns(spec.d), shape.columns(spec.dv)) // 2 + plan.block_q * 3 // 4 + 28
end

function wide.constants(spec, plan)
  local registers = split()
  return {
    { "MOVER_REGISTERS", registers.mover },
    { "VALUES_REGISTERS", registers.values },
    { "KEYS_REGISTERS", registers.keys },
    { "QUERIES_REGISTERS", registers.queries },
    { "D_FIRST", first_columns(spec.d), "columns of Q and K that are multiplied, in two parts" },
    { "D_REST", rest_columns(spec.d) },
    { "DV_FIRST", first_columns(spec.dv), "of V and dO" },
    { "DV_REST", rest_columns(spec.dv) },
    { "D_BLOCKS", blocks(spec.d), "of 64 columns of a tile of Q or K" },
    { "DV_BLOCKS", blocks(spec.dv), "of V or dO" },
    { "DQ_HALF", dq_half(spec), "columns of dQ that a block makes" },
    { "DQ_COLUMNS", dq_columns(spec, use), "at a time, at most" },
    { "K_BYTES", bytes(wide.KEYS, spec.d), "of a block's" },
    { "OTHER_K_BYTES", cdiv(dq_half(spec), 64) * wide.KEYS * shape.ROW, "of the other block's" },
    { "V_BYTES", bytes(wide.KEYS, spec.dv), "of a block's" },
    { "Q_BYTES", bytes(plan.block_q, spec.d), "of a tile" },
    { "DO_SLOTS", do_slots(use), "tiles of dO in flight" },
    { "DS_SLOTS", DS_SLOTS, "of dS" },
    { "DO_BYTES", bytes(plan.block_q, spec.dv), "of a tile" },
    { "DO_FIRST_BYTES", first_blocks(spec.dv) * plan.block_q * shape.ROW, "of a tile, which the first block fetches" },
    { "DO_REST_BYTES", (blocks(spec.dv) - first_blocks(spec.dv)) * plan.block_q * shape.ROW, "the second one" },
    { "DS_BYTES", plan.block_q * shape.ROW, "of a block's keys" },
    { "P_BYTES", plan.block_q * shape.ROW, "of a tile" },
  }
end

return wide
