-- shared_rows.lua: how many threads share a row. A row is chunks of 8 columns, which lie in turn with its threads; those are
-- a part of a warp, a power of two, or whole warps.
local shared_rows = {}

local WARPS_OF_BLOCK, SYNCS = 32, 15 -- named barriers beside that of the block

-- The plan in which each thread has about `chunks` of all chunks of a row, in blocks of about `warps` warps; nil: a block has
-- too few threads for that.
function shared_rows.plan(all, chunks, warps)
  local threads = cdiv(all, chunks)
  if threads > 32 then
    local own = cdiv(threads, 32)
    if own > WARPS_OF_BLOCK then return nil end
    local rows = math.max(1, math.min(SYNCS, warps // own))
    return { block_q = rows, warps = rows * own }
  end
  local lanes = 1
  while lanes < threads do lanes = 2 * lanes end
  return { block_q = 32 * warps // lanes, warps = warps }
end

-- Adds a plan to a list unless it is there, or is nil.
function shared_rows.add(plans, plan)
  for _, known in ipairs(plans) do
    if plan and known.block_q == plan.block_q and known.warps == plan.warps and known.block_kv == plan.block_kv and known.stages == plan.stages then return end
  end
  plans[#plans + 1] = plan
end

-- Threads of a row.
function shared_rows.group(plan) return 32 * plan.warps // plan.block_q end

-- Has a block several rows? Has a row several warps?
function shared_rows.has_rows(plan) return plan.block_q > 1 end
function shared_rows.has_warps(plan) return shared_rows.group(plan) > 32 end

-- Blocks that a multiprocessor has room for, whose threads have so many registers, at most 255. Each of its four parts has 16384
-- registers, which go to warps as a whole, 8 of a thread at a time, and takes every fourth warp of its blocks.
function shared_rows.resident(warps, registers)
  return 4 * (16384 // (32 * 8 * cdiv(registers, 8))) // warps
end

-- The constants of a plan whose rows have `chunks` chunks for all blocks of a row.
function shared_rows.constants(plan, chunks)
  local group = shared_rows.group(plan)
  return {
    { "ROWS", plan.block_q, "rows of a block" },
    { "GROUP", group, "threads that share a row" },
    { "LANES", math.min(group, 32), "of them, in one warp" },
    { "WARPS", math.max(1, group // 32), "warps that share a row" },
    { "CHUNKS", chunks, "times 8 columns that a thread has" },
    { "RAW", 2 * types.x.bytes, "words of 8 columns" },
  }
end

-- The shared memory in which warps of a row put `numbers` numbers each; none where a row has one warp.
function shared_rows.partials_bytes(plan, numbers) return shared_rows.has_warps(plan) and 2 * plan.warps * numbers * 4 or 0 end

function shared_rows.partials(plan, numbers)
  if not shared_rows.has_warps(plan) then return {} end
  local bytes = shared_rows.partials_bytes(plan, numbers)
  return { { "SM_PARTIALS", bytes, "numbers of each warp of a row [2][ROWS][WARPS][PARTIALS], float32" } }
end

return shared_rows
