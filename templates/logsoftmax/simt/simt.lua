-- simt.lua: log-softmax of rows on any arch: what the passes share. GROUP threads share a row, each every GROUP-th column of
-- it: a warp, so that a block has several rows, or, where rows are wide, the whole block.
local simt = {}

local COLUMNS_OF_LANE = 64 -- a row that gives each lane of a warp more is for a block

function simt.applies(spec, arch) return true end

function simt.candidates(spec, arch)
  local warp, block = { block_q = 4, warps = 4 }, { block_q = 1, warps = 8 }
  if spec.width > 32 * COLUMNS_OF_LANE then return { block, warp } end
  return { warp, block }
end

-- Has a row one warp, and a block several rows?
function simt.row_has_a_warp(plan) return plan.block_q > 1 end

-- The description of a pass that computes `outputs`.
function simt.describe(pass, about, inputs, outputs)
  return {
    about = about,
    align = 2,
    inputs = inputs,
    outputs = outputs,
    regions = {},
    steps = {
      { entry = pass, grid = { string.format("cdiv(rows, %d)", plan.block_q), "1", "1" }, threads = 32 * plan.warps, registers = 32,
        work = tostring(plan.block_q * spec.width) },
    },
    constants = {
      { "WIDTH", spec.width, "columns of a row" },
      { "ROWS", plan.block_q, "rows of a block" },
      { "GROUP", 32 * plan.warps // plan.block_q, "threads that share a row" },
      { "WARPS", plan.warps // plan.block_q, "warps that share a row" },
    },
    shared = simt.row_has_a_warp(plan) and {} or { { "SM_PARTIAL", 4 * plan.warps, "a number of each warp [WARPS], float32" } },
  }
end

return simt
