-- sums.lua: what the backward passes of layer and RMS norm add up over rows, and what a thread and a multiprocessor have room for
-- besides: gamma's words, and the next rows.
local text, shared_rows, norm = run("expr/text.lua"), run("tile/shared_rows.lua"), run("layernorm/simt/norm.lua")
local sums = {}

-- The tensors, in the order in which their sums lie.
sums.names = { "dgamma" }
if not norm.is_rms then table.insert(sums.names, "dbeta") end
if spec.bias == "grad" then table.insert(sums.names, "dbias") end

-- The tensor of the sums of that number, as text.
sums.tensors = {}
for i, name in ipairs(sums.names) do sums.tensors[i] = "p." .. name end
function sums.tensor(number) return text.choice(number, sums.tensors) end

-- At most: blocks of a multiprocessor, rows of a place in a block that are there or under way, blocks that share a row. Bytes of each
-- block's shared memory that are the system's.
local MOST_BLOCKS, MOST_STAGES, MOST_PARTS, RESERVED = 4, 4, 4, 1024

-- Registers of a thread in a coarse model: of each of its chunks it has sums, and may have the words of gamma. Branches of a chunk, where
-- z may have to be made and where not all threads have it, cost more the more chunks there are: ptxas joins them.
local OTHERS, OF_CHUNK, OF_Z, OF_ENDS = types.x.bytes > 2 and 59 or 40, 6, 3, 2
local function registers(plan, chunks, keeps_gamma)
  local branches = (norm.has_z and OF_Z or 0) + (norm.is_even(plan) and 0 or OF_ENDS)
  return OTHERS + chunks * (OF_CHUNK + 8 * #sums.names + (keeps_gamma and 2 * types.x.bytes or 0)) + chunks * chunks * branches
end

local function blocks_by_registers(plan, chunks, keeps_gamma)
  local count = registers(plan, chunks, keeps_gamma)
  return count > 255 and 0 or math.min(MOST_BLOCKS, shared_rows.resident(plan.warps, count))
end

-- Blocks that share the columns of a row: each reads all of it, and has the sums of some. One, where a thread has room for those
-- of all its chunks; nil: there is no room.
function sums.parts(plan)
  local all = norm.chunks_of(plan)
  for parts = 1, shared_rows.has_rows(plan) and 1 or MOST_PARTS do
    if blocks_by_registers(plan, cdiv(all, parts), false) > 0 then return parts end
  end
end

function sums.has_parts(plan) return sums.parts(plan) > 1 end

-- Chunks of a thread that it has the sums of.
function sums.chunks(plan) return cdiv(norm.chunks_of(plan), sums.parts(plan)) end

-- Words of gamma are kept where that costs no block, and a thread needs those of its sums alone.
function sums.keeps_gamma(plan)
  local chunks = sums.chunks(plan)
  return not sums.has_parts(plan) and blocks_by_registers(plan, chunks, true) == blocks_by_registers(plan, chunks, false)
end

function sums.registers(plan) return registers(plan, sums.chunks(plan), sums.keeps_gamma(plan)) end

-- The ring of a block: `stages` slots, in each of which a thread has its chunks of a row of three tensors: z, dout and dz. A plan
-- without stages reads them from where they are, twice.
local TENSORS = 3
function sums.has_ring(plan) return (plan.stages or 0) > 0 end
function sums.slot_bytes(plan) return TENSORS * norm.chunks_of(plan) * 32 * plan.warps * 8 * types.x.bytes end

-- Bytes of a block's rows; behind the last row its places' sums lie there, which the block adds up.
function sums.rows_bytes(plan)
  local joined = shared_rows.has_rows(plan) and #sums.names * plan.block_q * spec.width * 4 or 0
  return math.max((plan.stages or 0) * sums.slot_bytes(plan), joined)
end

-- Blocks of a multiprocessor, 0: there is no room for one.
function sums.blocks(plan)
  if not sums.parts(plan) then return 0 end
  local bytes = sums.rows_bytes(plan) + shared_rows.partials_bytes(plan, 2)
  return math.min(blocks_by_registers(plan, sums.chunks(plan), false), (machine.block_kb * 1024 + RESERVED) // (bytes + RESERVED))
end

-- The plans in which a thread has about `chunks` chunks, in blocks of about `warps` warps: as many blocks as there is room for without
-- a ring, with as many stages as they have room for, and fewer blocks that have room for more. A plan without stages, where there
-- are no asynchronous copies, or no room for a row that is under way, or where a block has a part of a row.
function sums.plans(chunks, warps)
  local plain, plans, last = shared_rows.plan(norm.chunks, chunks, warps), {}, 1
  if not plain or sums.blocks(plain) == 0 then return plans end
  for blocks = machine.mma and not sums.has_parts(plain) and sums.blocks(plain) or 0, 1, -1 do
    for stages = MOST_STAGES, last + 1, -1 do
      local plan = { block_q = plain.block_q, stages = stages, warps = plain.warps }
      if sums.blocks(plan) >= blocks then
        plans[#plans + 1], last = plan, stages
        break
      end
    end
  end
  return #plans > 0 and plans or { plain }
end

return sums
