-- mma.lua: products of matrices on the tensor cores of sm_80 and newer: what the passes share. A block has a tile of block_q
-- rows and block_kv columns of the result; its warps share it in two directions, 64 rows or fewer each. Both operands pass through
-- shared memory, `stages` tiles of STEP products of each sum in flight.
local mma, tiles, plans = {}, run("tile/tiles.lua"), run("linear/mma/plans.lua")

local STEP = 64

function mma.applies(spec, arch)
  if not machine.mma then return false, "needs sm_80 or newer, not " .. arch end
  return true
end

-- How the warps of a block share its tile: across rows and columns, and what each has.
function mma.division(plan)
  local row = plans.division[plan.warps]
  local down, across = row.down, row.across
  return { down = down, across = across, rows = plan.block_q // down, columns = plan.block_kv // across }
end

-- Registers of a thread, coarsely: the sums, a step's operands, addresses and the ring of stages.
function mma.registers(spec, plan)
  local split = mma.division(plan)
  return split.rows * split.columns // 32 + split.rows // 4 + 4 + 64
end

-- Bytes of an operand's tile, whichever of its sides is the longer.
local function bytes(rows) return rows * STEP * 2 end

function mma.shared(spec, plan)
  local stages = plan.stages * (bytes(plan.block_q) + bytes(plan.block_kv))
  local result = tiles.bytes(plan.block_q, plan.block_kv)
  return {
    { "SM_A", plan.stages * bytes(plan.block_q), "the first operand [stages][BLOCK_M][STEP], then the result [BLOCK_M][BLOCK_N]" },
    { "SM_B", math.max(plan.stages * bytes(plan.block_kv), result - plan.stages * bytes(plan.block_q)), "the second one [stages][BLOCK_N][STEP]" },
    { "SM_END", 112, "what rounding the base to 128 bytes may take" },
  }
end

function mma.candidates(spec, arch)
  local fit, unfit, limit = {}, {}, 1024 * machine.block_kb
  for _, row in ipairs(plans.plans) do
    local plan, sum = { block_q = row.block_q, block_kv = row.block_kv, stages = row.stages, warps = row.warps }, 0
    for _, block in ipairs(mma.shared(spec, plan)) do sum = sum + block[2] end
    if sum > limit then
      plan.why = string.format("its tiles need %d KB of shared memory, a block of %s has %d", cdiv(sum, 1024), arch, machine.block_kb)
    end
    table.insert(plan.why and unfit or fit, plan)
  end
  return fit, unfit
end

-- A step that makes `rows` by `columns` numbers, each a sum of so many products: texts. parts: a text, how many blocks share a sum.
function mma.step(spec, plan, entry, rows, columns, products, parts)
  return { entry = entry,
           grid = { string.format("cdiv(%s, %d) * cdiv(%s, %d)", rows, plan.block_q, columns, plan.block_kv), parts or "1", "1" },
           threads = 32 * plan.warps, registers = math.min(255, mma.registers(spec, plan)), shared = mma.shared(spec, plan),
           -- the operands of a tile, the first tiles of it, which nothing hides, and the result
           work = string.format("(%d + %s) * %d", 2 * STEP, products, plan.block_q * plan.block_kv + 32 * (plan.block_q + plan.block_kv)) }
end

function mma.finish(d, plan)
  local split = mma.division(plan)
  for _, c in ipairs({
    { "BLOCK_M", plan.block_q, "rows of a block" },
    { "BLOCK_N", plan.block_kv, "columns of a block" },
    { "STEP", STEP, "products of a sum in a stage" },
    { "THREADS", 32 * plan.warps },
    { "BAND", 8, "tiles of rows that stay in L2 while those of columns go by" },
    { "WARP_M", split.rows, "rows of a warp" },
    { "WARP_N", split.columns, "columns of a warp" },
    { "ACROSS", split.across, "warps that share rows" },
    { "M_MAX", split.rows // 16, "tiles of 16 rows of a warp" },
    { "M_STEP", 16, "rows from one of them to the next" },
    { "N_MAX", split.columns // 8, "tiles of 8 columns of a warp" },
    { "CHUNKS_K", STEP // 8, "16-byte chunks of STEP products" },
    { "CHUNKS_M", plan.block_q // 8, "of BLOCK_M rows" },
    { "CHUNKS_N", plan.block_kv // 8, "of BLOCK_N columns" },
    { "A_BYTES", bytes(plan.block_q), "of a tile" },
    { "B_BYTES", bytes(plan.block_kv), "of a tile" },
    { "UNROLL", 4, "steps of a product in a straight line" },
  }) do d.constants[#d.constants + 1] = c end
  return d
end

return mma
