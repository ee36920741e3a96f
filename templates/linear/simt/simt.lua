-- simt.lua: products of matrices without tensor cores, on any arch: a thread has FOUR rows and columns of a tile of the result.
-- Operands pass through shared memory as float32, STEP products of each sum at a time.
local simt = {}

local STEP, FOUR = 16, 4

function simt.applies() return true end

function simt.candidates()
  return { { block_q = 64, block_kv = 64, warps = 8 }, { block_q = 32, block_kv = 32, warps = 2 } }
end

-- A step that makes `rows` by `columns` numbers, each a sum of so many products: texts. parts: a text, how many blocks share a sum.
function simt.step(plan, entry, rows, columns, products, parts)
  return { entry = entry, grid = { string.format("cdiv(%s, %d) * cdiv(%s, %d)", rows, plan.block_q, columns, plan.block_kv), parts or "1", "1" },
           threads = 32 * plan.warps, registers = 80,
           work = string.format("(%d + %s) * %d", STEP, products, plan.block_q * plan.block_kv + 32 * (plan.block_q + plan.block_kv)) }
end

function simt.finish(d, plan)
  for _, c in ipairs({
    { "BLOCK_M", plan.block_q, "rows of a block" },
    { "BLOCK_N", plan.block_kv, "columns of a block" },
    { "STEP", STEP, "products of a sum at a time" },
    { "THREADS", 32 * plan.warps },
    { "ACROSS", plan.block_kv // FOUR, "threads that share rows, four columns each" },
    { "PITCH_M", 4 * plan.block_q + 16, "bytes between products of the first operand" },
    { "PITCH_N", 4 * plan.block_kv + 16, "of the second one" },
  }) do d.constants[#d.constants + 1] = c end
  d.shared = {
    { "SM_A", STEP * (4 * plan.block_q + 16), "the first operand [STEP][BLOCK_M], float32" },
    { "SM_B", STEP * (4 * plan.block_kv + 16), "the second one [STEP][BLOCK_N], float32" },
  }
  return d
end

return simt
