-- backward_columns.lua: how wgmma_backward takes heads wider than 256, of which no block can hold dK and dV of 64 keys. The blocks of a
-- cluster have the same keys, and columns of their own: of K, V, Q and dO, and so of dK, dV and dQ. Each makes S and dP over its own
-- columns and sends these parts to the others; all add them up in the same order. A block has the four warpgroups of backward_wide.lua.
local columns = { template = "attention/wgmma/backward_columns.cut", KEYS = 64 }
local KEEPS_BYTES = 1024 -- two words of each thread
local MOST = 4 -- blocks of 64 columns that a block of the cluster has: its dK fits a warpgroup
local shape, barriers = run("attention/wgmma/shape.lua"), run("tile/barriers.lua")
local kinds_of_barriers = run("attention/wgmma/backward_columns_barriers.lua")

function columns.is_for() return shape.is_wide end
columns.CLUSTER = cdiv(math.max(shape.blocks(spec.d), shape.blocks(spec.dv)), MOST)

-- Why a spec has no kernel, nil: it has one.
function columns.refusal()
  local function left(what) return "leaves heads wider than 256 to mma where " .. what end
  if not hooks.norm.ds_is_proportional then return left("dS is not proportional to P") end
  if #hooks.input.grads > 0 then return left("an input has a gradient") end
  if spec.deterministic == "true" then return left("dQ is summed in an order") end
end

-- Blocks of 64 columns that each block of the cluster has.
local function blocks(width) return cdiv(shape.blocks(width), columns.CLUSTER) end
local function bytes(rows, width) return rows * shape.ROW * blocks(width) end
-- Bytes of a part of S, or of dP, in float32.
local function part_bytes(plan) return plan.block_q * columns.KEYS * 4 end

function columns.shared(spec, plan)
  local q, keys = plan.block_q, columns.KEYS
  local list = {
    { "SM_K", bytes(keys, spec.d), "K [D_BLOCKS][64][64]" },
    { "SM_V", bytes(keys, spec.dv), "V [DV_BLOCKS][64][64]" .. (types.dv.name == "f32" and "" or ", then dV") },
    { "SM_Q", bytes(q, spec.d), "Q [D_BLOCKS][BLOCK_Q][64]" .. (types.dk.name == "f32" and "" or ", then dK") },
    { "SM_DO", bytes(q, spec.dv), "dO [DV_BLOCKS][BLOCK_Q][64]" },
    { "SM_DS", q * shape.ROW, "dS [BLOCK_Q][64]" },
    { "SM_S_PARTS", columns.CLUSTER * part_bytes(plan), "S^T of each block's columns, as threads have it [CLUSTER][BLOCK_Q / 8][128][4], float32" },
    { "SM_DP_PARTS", columns.CLUSTER * part_bytes(plan), "dP^T, the same" },
    { "SM_P", q * shape.ROW, "P^T, as operands of warps [BLOCK_Q / 16][128][4]" },
    { "SM_KEPT", q * 8, "what is kept of a row, and delta [BLOCK_Q][2], float32" },
    barriers.row(kinds_of_barriers(columns.CLUSTER)),
  }
  if hooks.norm.drop then list[#list + 1] = { "SM_KEEPS", KEEPS_BYTES, "what dropout keeps, as threads have it [2][128]" } end
  list[#list + 1] = { "SM_END", 1008, "what rounding the base to 1024 bytes may take" }
  return list
end

-- Registers of the threads of each warpgroup, 512 together: those that move data, make dV, make dK, which have dP and what is to become
-- dS beside it, and make dQ. Those that make dV draw what dropout keeps.
local FEW, VALUES, KEYS, QUERIES = 32, 200, 216, 64
if hooks.norm.drop then FEW, VALUES, KEYS = 24, 216, 208 end
function columns.most() return math.max(VALUES, KEYS) end

-- Registers of a thread that makes dV or dK, coarsely: that, S or dP, P or dS, and addresses.
function columns.registers(spec, plan)
  return 32 * math.max(blocks(spec.d), blocks(spec.dv)) + plan.block_q * 3 // 4 + 28
end

-- Plans that compilers refuse, because they spill: of blocks that have the most columns (backward_refused.lua says what a row is).
local function has_most(spec) return math.max(blocks(spec.d), blocks(spec.dv)) == MOST end
columns.refused = {
  compiler = "NVRTC 13.0",
  rows = {
    { cause = "score", what = "a score that is more than s and terms beside it, and more than 192 columns of a block",
      when = function(spec, _, traits) return has_most(spec) and not traits.ds_follows_from_p end,
      spare = 255, spilled = { { "d 512, s * s", 80 }, { "d 512, softcap(5.0), the most", 124 } } },
    { cause = "mask", what = "a mask that is tested key by key, and more than 192 columns of a block",
      when = function(spec, _, traits) return has_most(spec) and (not traits.mask.row_sees_a_range or traits.mask.has_gaps.queries == true) end,
      spare = 255, spilled = { { "d 512, chunked(48)", 52 }, { "d 512, dilated(4)", 128 } } },
    { cause = "layout", what = "slices, and more than 192 columns of a block",
      when = function(spec) return has_most(spec) and seq.slices ~= nil end,
      spare = 255, spilled = { { "d 512, causal", 20 } } },
    { cause = "dropout", what = "dropout of parts of sequences, and more than 192 columns of a block",
      when = function(spec, _, traits) return has_most(spec) and traits.norm.drop ~= nil and seq.shard ~= nil end,
      spare = 255, spilled = { { "d 512, causal", 12 }, { "d 448/512, packed", 20 } } },
  },
}

function columns.constants(spec, plan)
  local constants = {
    { "CLUSTER", columns.CLUSTER, "blocks, of some columns each" },
    { "MOVER_REGISTERS", FEW },
    { "VALUES_REGISTERS", VALUES },
    { "KEYS_REGISTERS", KEYS },
    { "QUERIES_REGISTERS", QUERIES },
    { "D_BLOCKS", blocks(spec.d), "of 64 columns of Q, K, dK and dQ that a block has" },
    { "DV_BLOCKS", blocks(spec.dv), "of V, dO and dV" },
    { "K_BYTES", bytes(columns.KEYS, spec.d), "of a block's" },
    { "V_BYTES", bytes(columns.KEYS, spec.dv), "of a block's" },
    { "Q_BYTES", bytes(plan.block_q, spec.d), "of a block's" },
    { "DO_BYTES", bytes(plan.block_q, spec.dv), "of a block's" },
    { "P_BYTES", plan.block_q * shape.ROW, "of a tile" },
    { "PART_BYTES", part_bytes(plan), "of S or dP, of a block's columns" },
  }
  if hooks.norm.drop then constants[#constants + 1] = { "KEEPS_BYTES", KEEPS_BYTES, "of a tile" } end
  return constants
end

return columns
