-- rows.lua: how log-softmax divides rows: what its passes share. A chunk is 8 columns that begin at a multiple of 16 bytes, so
-- that a row whose width is no multiple of 8 may begin and end within one.
local shared_rows = run("tile/shared_rows.lua")
local rows = {
  has_target = spec.target == "true",
  is_shifted = spec.width % 8 ~= 0,
}

local beyond = rows.is_shifted and 16 // types.x.bytes - 1 or 0 -- columns of the first chunk that are not the row's, at most
rows.chunks = cdiv(spec.width + beyond, 8)

local WARPS, MOST_WARPS, MOST_BLOCKS = 4, 16, 8
local MOST_THREADS_OF_HOST = 1024 -- of a cluster
local LOADED = 4 -- chunks of a thread whose loads are under way together, of 16-bit columns

-- Words of a row that a thread holds: so many that two blocks have room on a multiprocessor, and at most.
local OF_TWO_BLOCKS, HELD = 32, 64

-- Blocks of a cluster that share a row, each of which has block_kv columns of it.
function rows.blocks(plan)
  return (plan.block_kv or 0) > 1 and cdiv(rows.chunks, plan.block_kv // 8) or 1
end

function rows.has_blocks(plan) return rows.blocks(plan) > 1 end

-- Registers of a thread that has words of `chunks` chunks, in a coarse model: 16-bit columns are taken
-- apart, and at the ends of a row that is not even put together, too.
local function registers(plan, tensors, chunks)
  local words = 2 * types.x.bytes * tensors * chunks
  local is_even = not rows.is_shifted and rows.chunks == chunks * shared_rows.group(plan) * rows.blocks(plan)
  return 48 + words + (types.x.bytes > 2 and 0 or is_even and words // 2 or words)
end

-- How a thread goes over its chunks, of so many tensors: as many at a time as it holds, or, where it has more, as many as are
-- loaded together. Those that are not held are read a second time where a row's result is needed for each column.
function rows.loops(plan, tensors)
  local words = 2 * types.x.bytes * tensors
  local all = cdiv(rows.chunks, shared_rows.group(plan) * rows.blocks(plan))
  local most = rows.has_target and OF_TWO_BLOCKS or HELD
  if all * words <= most and shared_rows.resident(plan.warps, registers(plan, tensors, all)) > 0 then return all, 1 end
  local loaded = math.max(1, LOADED * 4 // words)
  return loaded, cdiv(all, loaded)
end

function rows.has_batches(plan, tensors)
  local _, batches = rows.loops(plan, tensors)
  return batches > 1
end

-- Have all threads as many whole chunks?
function rows.is_even(plan, tensors)
  local chunks, batches = rows.loops(plan, tensors)
  return not rows.is_shifted and rows.chunks == chunks * batches * shared_rows.group(plan) * rows.blocks(plan)
end

-- Plans whose threads hold a row; wide ones also for the blocks of a cluster. What nobody holds is read twice.
function rows.candidates(tensors)
  local words, plans = 2 * types.x.bytes * tensors, {}
  local few, held = OF_TWO_BLOCKS // words, HELD // words
  local function add(plan)
    if plan and plan.warps <= MOST_WARPS then shared_rows.add(plans, plan) end
  end
  for _, chunks in ipairs({ math.min(4, few, cdiv(rows.chunks, 32)), 2, few }) do add(shared_rows.plan(rows.chunks, chunks, WARPS)) end
  local is_wide = rows.chunks > 64 * MOST_WARPS
  for blocks = 2, machine.cluster and not rows.has_target and is_wide and MOST_BLOCKS or 1 do
    local each, warps = cdiv(rows.chunks, blocks), machine.engine and MOST_THREADS_OF_HOST // 32 // blocks or MOST_WARPS
    local plan = { block_q = 1, block_kv = 8 * each, warps = math.min(warps, MOST_WARPS) }
    local chunks, batches = rows.loops(plan, tensors)
    if blocks & blocks - 1 == 0 and chunks > 1 and (machine.engine or batches == 1) then add(plan) end
  end
  if is_wide then add(shared_rows.plan(rows.chunks, held, WARPS)) end
  if rows.chunks > 32 * MOST_WARPS * few then add({ block_q = 1, warps = MOST_WARPS }) end
  return plans
end

-- The description of a pass, whose threads hold words of so many tensors. numbers: of a row, that its warps make one of.
function rows.describe(d, plan, tensors, numbers)
  local chunks, batches = rows.loops(plan, tensors)
  local blocks, threads = rows.blocks(plan), 32 * plan.warps
  local registers = registers(plan, tensors, chunks)
  d.align, d.regions = types.x.bytes, {}
  d.steps = {
    { entry = d.entry, grid = { blocks > 1 and string.format("rows * %d", blocks) or string.format("cdiv(rows, %d)", plan.block_q), "1", "1" },
      threads = threads, registers = registers, cluster = blocks > 1 and blocks or nil,
      work = tostring(cdiv(plan.block_q * spec.width, blocks)) },
  }
  d.entry = nil
  d.constants = shared_rows.constants(plan, chunks)
  table.insert(d.constants, 1, { "WIDTH", spec.width, "columns of a row" })
  table.insert(d.constants, { "BATCHES", batches, "times that a thread has so many" })
  table.insert(d.constants, { "BLOCKS", blocks, "that share a row" })
  table.insert(d.constants, { "BYTES", types.x.bytes, "of a column" })
  table.insert(d.constants, { "PARTIALS", numbers, "numbers that warps of a row make one of" })
  table.insert(d.constants, { "RESIDENT", math.max(1, shared_rows.resident(plan.warps, registers)), "blocks that a multiprocessor has room for" })
  d.shared = shared_rows.partials(plan, numbers)
  if blocks > 1 then
    table.insert(d.shared, { "SM_EXCHANGE", 16 * blocks, "words of each block of a row [BLOCKS][4]" })
    table.insert(d.shared, { "SM_EXCHANGE_BAR", 8, "the words have come" })
  end
  return d
end

rows.library = { "tile/columns.cut", "tile/shared_rows.cut", "tile/exchange.cut", "logsoftmax/simt/rows.cut" }

function rows.applies() return true end

return rows
