-- mma.lua: what the passes of the mma family share.
local mma, tiles, heads = {}, run("tile/tiles.lua"), run("attention/heads.lua")

-- Are K and V numbers of e4m3, which become those of Q's type on their way from shared memory?
mma.is_widened = types.k ~= nil and types.k.is_byte and not types.q.is_byte

-- Can a launch start beside the end of the one before?
function mma.can_start_early() return machine.pdl end

-- What blocks of a launch that does so wait for before they touch memory.
function mma.wait_before()
  return use.starts_early and "grid_wait(); // until the grid before has ended" or ""
end

-- Why the family does not take a spec of e4m3; nil: it does.
local function e4m3_refusal(spec, arch)
  if types.q.is_byte and not machine.e4m3 then return "needs sm_89 or newer for e4m3, not " .. arch end
  return heads.is_wide(spec) and "takes head dims of e4m3 up to 256" or nil
end

function mma.applies(spec, arch)
  if not machine.mma then return false, "needs sm_80 or newer, not " .. arch end
  local why = hooks.descale and e4m3_refusal(spec, arch)
  if why then return false, why end
  return not hooks.norm.refused, hooks.norm.refused
end

-- Bytes of shared memory that a block may have.
function mma.shared_limit() return 1024 * machine.block_kb end

-- Bytes of shared-memory blocks.
function mma.bytes(blocks)
  local sum = 0
  for _, block in ipairs(blocks) do sum = sum + (block[2] + 15) // 16 * 16 end
  return sum
end

-- Is the row of plans, or of plans that are refused, for this machine? `on`: instruction sets; absent: all.
local function is_for_machine(row)
  for _, set in ipairs(row.on or {}) do
    if machine[set] then return true end
  end
  return not row.on
end

-- The plans of a list, each row of which may say of which machines and specs it is one: `on`, `when`.
function mma.candidates(rows, spec)
  local plans = {}
  for _, row in ipairs(rows) do
    if is_for_machine(row) and (not row.when or row.when(spec, hooks)) then
      plans[#plans + 1] = { block_q = row.block_q, block_kv = row.block_kv, stages = row.stages,
                            warps = row.warps, warps_per_key = row.warps_per_key }
    end
  end
  return plans
end

-- How a plan's tiles pass through shared memory, `stages` of them one behind the other. Gives
--   is_single, is_deep  there is one stage; there are more than two
--   of(bytes, stage)    text: how far behind the first stage's tile, of so many bytes, another stage's begins
function mma.ring(plan)
  local ring = { is_single = plan.stages == 1, is_deep = plan.stages > 2 }
  function ring.of(bytes, stage)
    return ring.is_single and "" or string.format(" + (u32)(%s * %s)", stage or "stage", bytes)
  end
  return ring
end

-- How a plan of the backward pass divides the work. `warps_per_key` warps share keys where a warp cannot
-- hold the whole width of their dK and dV: they split the queries of S, and the columns of dK and dV. Gives
--   warps_per_key, warps_share_keys
--   warp_kv                  keys of a warp
--   query_parts              parts of the queries, 16 at least, that warps which share keys have of S; others make none
--   some_make_no_scores      there are such
--   queries                  of S and dP at a time: as many as the registers that are left can hold
--   queries_in_turns         the warp has more than these
--   dq_tiles, dq_in_turns    tiles of 16 rows of dQ at a time; one of all rows in turn: the least plans fit the widest heads
--   warps_q                  of dQ: warps along the rows, 32 each, or all in turn; the others along the columns
--   tiles_end_within_kept    a tile's rows end within those of a block of the pass that makes what is kept, a row for 8 threads
--   diagonal_blocks          blocks of 8 keys in which a warp's diagonals of dS begin
--   some_have_no_diagonals   there are more warps than such blocks
function mma.division(plan)
  local warps_per_key = math.max(1, plan.warps_per_key or 1) -- 0 in a plan that does not name them
  local warp_kv = plan.block_kv * warps_per_key // plan.warps
  local usual_queries = warp_kv > 16 and 32 or math.min(64, plan.block_q)
  local query_parts = math.max(1, math.min(warps_per_key, plan.block_q // 16))
  local queries = warps_per_key > 1 and plan.block_q // query_parts or usual_queries
  local dq_in_turns = plan.block_kv <= 32
  return {
    warps_per_key = warps_per_key, warps_share_keys = warps_per_key > 1,
    warp_kv = warp_kv, query_parts = query_parts, some_make_no_scores = query_parts < warps_per_key,
    queries = queries, queries_in_turns = plan.block_q > query_parts * queries,
    warps_q = dq_in_turns and 1 or plan.block_q // 32,
    dq_tiles = dq_in_turns and 1 or 2, dq_in_turns = dq_in_turns,
    tiles_end_within_kept = plan.block_q % (4 * plan.warps) > 0,
    diagonal_blocks = math.max(1, plan.block_kv // 8 // plan.warps), some_have_no_diagonals = plan.block_kv // 8 < plan.warps,
  }
end

-- Columns of a matrix, `width` wide, that each of so many warps has.
function mma.columns(width, warps) return 16 * cdiv(tiles.chunks(width), 2 * warps) end

-- Registers of a thread of the backward pass that hold dK and dV.
function mma.gradients(spec, plan)
  local split = mma.division(plan)
  return split.warp_kv * (mma.columns(spec.d, split.warps_per_key) + mma.columns(spec.dv, split.warps_per_key)) // 32
end

-- The sentence that says why a compiler refuses a plan that leaves so many registers free, by the rows of
-- `refused` (forward_refused.lua says what they are); nil: it does not.
local function refusal(refused, spec, plan, free)
  local most, total, what = {}, 0, {}
  for _, row in ipairs(refused.rows) do
    if is_for_machine(row) and row.when(spec, plan, hooks) then
      local spare = type(row.spare) == "function" and row.spare(plan) or row.spare
      total = total + math.max(0, spare - (most[row.cause] or 0))
      most[row.cause] = math.max(spare, most[row.cause] or 0)
      if spare > 0 then what[#what + 1] = row.what end
    end
  end
  return free < total and string.format("%s spills in it: %s", refused.compiler, table.concat(what, "; ")) or nil
end

-- The same plans; those whose tiles of keys may have several descales are refused: `why`.
function mma.with_one_descale(plans)
  for _, plan in ipairs(plans) do plan.why = hooks.descale and hooks.descale.refusal(plan.block_kv) end
  return plans
end

-- The plans of a family whose registers (at most 255, or most(plan)) and shared memory fit and which no
-- compiler refuses; and the other plans, each with its reason `why`, which it may have before.
function mma.that_fit(family, spec, arch, plans, most)
  local fit, unfit = {}, {}
  for _, plan in ipairs(plans) do
    local bytes, limit = mma.bytes(family.shared(spec, plan)), mma.shared_limit()
    local registers, held = family.registers(spec, plan), most and most(plan) or 255
    if not plan.why and bytes > limit then
      plan.why = string.format("its tiles need %d KB of shared memory, a block of %s has %d",
                               cdiv(bytes, 1024), arch, limit // 1024)
    elseif not plan.why and registers > held then
      plan.why = string.format("it needs %d registers a thread, which has %d", registers, held)
    elseif not plan.why and family.refused then
      plan.why = refusal(family.refused, spec, plan, held - registers)
    end
    local list = plan.why and unfit or fit
    list[#list + 1] = plan
  end
  return fit, unfit
end

-- Columns of O that a block of a forward makes: all, or an equal part of more than a thread's registers hold, which they share
-- with a second accumulator (norm.beside), with weights and sums of a tile of e4m3, or, of more than 256, with what dropout draws. Blocks of the
-- same rows make the same S then.
function mma.columns_of_block(spec)
  local beside_draws = hooks.norm.drop and spec.dv > heads.NARROW
  local has_sums_apart = types.p.is_byte or mma.is_widened and hooks.descale.is_of_blocks -- of a tile
  local blocks = cdiv(spec.dv, (hooks.norm.beside or has_sums_apart) and 128 or beside_draws and 192 or heads.NARROW)
  local chunk = 16 // types.v.bytes
  return chunk * cdiv(spec.dv, chunk * blocks)
end

-- Steps of 32 bytes to unroll, `most` at most, without a rest.
function mma.unroll(spec, most)
  local d, dv = tiles.chunks(spec.d, types.k) // 2, tiles.chunks(spec.dv, types.v) // 2
  while d % most > 0 or dv % most > 0 do most = most - 1 end
  return most
end

-- Chunks that one sum in float32 takes, of so many of a row: parts of equal lengths, of 256 columns at most, and pairs of chunks.
function mma.chunks_of_sum(chunks)
  return cdiv(cdiv(chunks, cdiv(chunks, heads.NARROW // 8)), 2) * 2
end

-- The constant of tile/tiles.cut that says how many pages a thread looks up side by side, of keys that lie in pages; nil: of others.
function mma.page_lookups(most)
  return seq.is_paged() and { "PAGE_LOOKUPS", most, "pages that a thread looks up side by side" } or nil
end

-- The arguments of a pass: `first`, the inputs of the score, `last` or what a forward's normaliser reads, and what says where
-- sequences are.
function mma.arguments(first, last)
  for _, list in ipairs({ hooks.input.names, last or hooks.norm.inputs, seq.inputs }) do table.move(list, 1, #list, #first + 1, first) end
  return first
end

-- The score's input that is kept in shared memory, tile by tile, if there is one.
function mma.add_input_tile(blocks, rows, columns, shape)
  local tiled = hooks.input.tiled
  if tiled then blocks[#blocks + 1] = { "SM_INPUT", 2 * rows * columns, tiled.name .. " " .. shape } end
end

-- Are there rows of no multiple of 128 bytes?
function mma.is_ragged(spec) return spec.d % 64 > 0 or spec.dv % 64 > 0 end

-- Registers that the loads of the score's inputs take, which ptxas starts ahead, beside `scores` of a thread. An
-- input that is read by distance alone is read once a diagonal.
function mma.registers_of_inputs(scores)
  local score, input = hooks.score, hooks.input
  if score.is_s then return 0 end
  if hooks.score_is_long or input.differs_by_pair and not input.tiled and not input.differs_by_distance then return 2 * scores end
  if hooks.pairs_are_looped or input.differs_by_key then return scores // 2 end
  return (score.has_tanh or #input.names > 0) and 12 or 4
end

-- Does the score take hardly more registers than s itself on Hopper? So do s and one term, and a cap without a mask.
local function score_is_light()
  local input, score = hooks.input, hooks.score
  if hooks.score_is_long or hooks.pairs_are_looped or not machine.hopper then return false end
  if score.has_tanh then
    return score.tanhs_are_of_scaled_s and #input.names == 0 and hooks.mask.edge_count == 0 and not hooks.mask.has_gaps.keys
  end
  return score.adds_to_s and (not input.differs_by_key or input.one_differs_by_key and (input.tiled or input.differs_by_distance)) and true or false
end

-- Are weights and dS of a backward pass made at once? dV takes P before dS is made, so that with dropout, and where dS takes more
-- than P, they are.
function mma.makes_both() return not hooks.ds_follows_from_p or hooks.norm.drop ~= nil or hooks.norm.basis ~= nil end

-- The same of the backward pass, in whose warps of 32 keys a light score takes few; and what ragged rows take. The
-- second result: what the score would take were it not light.
function mma.registers_of_score(spec, plan)
  local split, ragged = mma.division(plan), mma.is_ragged(spec) and 30 or 0
  local scores = split.warp_kv * split.queries // 32
  local at_hand = hooks.input.tiled and mma.makes_both() and scores + 12 or 0 -- numbers of the input, and float32 of some
  local usual = mma.registers_of_inputs(scores) + at_hand + ragged
  return split.warp_kv > 16 and score_is_light() and at_hand == 0 and 4 + ragged or usual, usual
end

-- Blocks begin at multiples of 128 bytes: what rounding the base up may take.
mma.rounding = { "SM_END", 112, "what rounding the base to 128 bytes may take" }

return mma
