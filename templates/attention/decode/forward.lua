-- forward.lua: attention of few query rows on the tensor cores of sm_80 and newer, at the speed of memory. The rows of a tile
-- are those of all query heads of a key/value head, so that its keys are read once. The keys of all tiles lie in a line, which
-- the blocks divide by the lengths that sequences have in memory (line.cut); parts of a tile are joined by the last block that
-- comes to one (parts.cut). A warp, or a few of them, goes over keys of its own and waits for nobody else until a tile's end.
local family = { template = "attention/decode/forward.cut",
                 library = { "tile/tiles.cut", "tile/halves.cut", "tile/widened.cut", "tile/descaled.cut", "tile/pages.cut", "tile/claims.cut", "tile/sequences.cut", "tile/sums.cut" } }

local tiles, mma, shape = run("tile/tiles.lua"), run("attention/mma/mma.lua"), run("attention/decode/shape.lua")
local heads = run("attention/heads.lua")
function family.applies(spec, arch)
  local fits, why = mma.applies(spec, arch)
  if fits and heads.is_wide(spec) then return false, string.format("leaves head dims of more than %d to mma", heads.NARROW) end
  if fits and types.q.is_byte then return false, "takes e4m3 of k and v alone, beside a q of 16 bits" end
  if fits and hooks.norm.beside then return false, string.format("normalizer=%s has a second accumulator", spec.normalizer) end
  if fits and hooks.norm.drop then return false, "drops no weights" end
  if fits and seq.slices then return false, "leaves slices to mma" end
  if fits and seq.shard then return false, "leaves parts of sequences to mma" end
  if fits and hooks.max_logit then return false, "leaves max_logit to mma" end
  return fits, why
end

-- SPAN_KEYS: keys that a block takes of a tile of rows at least, where others are to have the rest: what reading so many takes
-- a block alone is what joining parts takes. MULTIPROCESSORS: of a Hopper GPU; a launch has a block for each. LINE_PLACES:
-- tiles of rows, or groups of them, whose place in the line is kept in shared memory.
local SPAN_KEYS, MULTIPROCESSORS, LINE_PLACES = 512, 132, 256
-- Keys of a sequence for which a launch has a block: fewer than SPAN_KEYS, because the model's blocks read as fast alone as
-- beside others, and one alone reads three times as fast.
local GRID_KEYS = 176
-- Where a row's bits may not depend on other sequences: keys of a part, of which large tiles have more, as they have more to join;
-- more keys where those make too many parts; and query rows of a sequence up to which it has parts.
local function invariant_keys(plan) return plan.block_q > 16 and 2048 or 1024 end
local INVARIANT_PARTS, INVARIANT_ROWS = 16, 16
local is_invariant = spec.batch_invariant == "true"

local function part_floats(spec, plan)
  return plan.block_q * (shape.part_columns(spec) + 4 * #hooks.norm.state)
end

-- A team's part of O lies in its last stage, where it fits: no copy is on its way to it between segments.
local function k_bytes(spec, plan) return tiles.bytes(plan.block_kv, spec.d, types.k) end
local function stage_bytes(spec, plan) return k_bytes(spec, plan) + tiles.bytes(plan.block_kv, spec.dv, types.v) end
local function part_bytes(spec, plan) return plan.block_q * 4 * shape.part_pitch(spec) end
local function part_is_in_stage(spec, plan) return part_bytes(spec, plan) <= stage_bytes(spec, plan) end

function family.shared(spec, plan)
  local teams, rows = shape.teams(spec, plan), plan.block_q
  local blocks = {
    { "SM_KEYS", teams * plan.stages * stage_bytes(spec, plan), "K [BLOCK_KV][D] and V [BLOCK_KV][DV] of each of [TEAMS][stages]" },
    { "SM_STATES", math.max(1, #hooks.norm.state) * teams * rows * 16, "states of its rows, by lanes [TEAMS][states][BLOCK_Q][4]" },
    { "SM_LINE", 4 * (LINE_PLACES + 1), "where in the line of keys tiles of rows begin [LINE_PLACES + 1]" },
    { "SM_LAST", 16, "whether the block is the last one to come to a tile of rows" },
    mma.rounding,
  }
  if not part_is_in_stage(spec, plan) then
    table.insert(blocks, 2, { "SM_PARTS", teams * part_bytes(spec, plan), "O of a team's keys [TEAMS][BLOCK_Q][PART_PITCH], float32" })
  end
  return blocks
end

-- Registers of a thread, coarsely: O, Q, S, the rows' state and addresses.
function family.registers(spec, plan)
  local rows = shape.warp_rows(spec, plan) // 8
  local scores = plan.block_kv // 2
  local widened = shape.is_widened and 8 or 0
  -- beside descales of blocks, scores of 32 keys: with fewer over NVRTC 13.0 spills 8 to 40 bytes at d 128, alibi
  local has_blocks = hooks.descale ~= nil and hooks.descale.is_of_blocks
  local of_scores = has_blocks and not hooks.score.is_s and plan.block_kv > 16 and 64 or 0
  return rows * 2 * shape.column_tiles(spec) + shape.q_words(spec, plan) + scores + widened + of_scores + 8 * rows + 56 + mma.registers_of_inputs(scores) +
    (seq.is_dense and 0 or 16)
end

function family.candidates(spec, arch)
  local plans = {}
  for _, row in ipairs(run("attention/decode/forward_plans" .. (shape.is_widened and "_e4m3" or "") .. ".lua")) do
    if not row.when or row.when(spec) then
      plans[#plans + 1] = { block_q = row.block_q, block_kv = row.block_kv, stages = row.stages, warps = row.warps }
    end
  end
  return mma.that_fit(family, spec, arch, mma.with_one_descale(plans))
end

-- Expressions of the recipe: query rows of a tile; about how many tiles of rows all key/value heads have.
local function tokens(plan) return string.format("max(1, %d / max(1, h / max(1, hk)))", plan.block_q) end
local function row_tiles(plan)
  if seq.is_packed("q") then return string.format("(cdiv(tokens_q * h, %d) + b * hk)", plan.block_q) end
  return string.format("b * hk * cdiv(nq * h, max(1, hk) * %d)", plan.block_q)
end

function family.describe(spec, plan)
  local all = row_tiles(plan)
  local keys = seq.is_packed("k") and "tokens_k" or "nk"
  local most_parts = string.format("max(1, cdiv(%s, %d))", keys, is_invariant and invariant_keys(plan) or GRID_KEYS)
  local grid = string.format(is_invariant and "%s * %s" or "min(%s * %s, %d)", all, most_parts, MULTIPROCESSORS)
  local places = "2 * " .. grid
  local keys_of_block = string.format("max(%d, %s * %s / %d)", GRID_KEYS, hooks.mask.keys_seen, all, MULTIPROCESSORS)
  if is_invariant then
    keys_of_block = string.format("%s / %s", hooks.mask.keys_seen, most_parts)
    local of_all = seq.is_packed("k") and string.format("(tokens_k / %d + b + 1)", invariant_keys(plan)) or "b * " .. most_parts
    places = string.format("%s * cdiv(%d, %s) * cdiv(h / max(1, hk), %d) * hk", of_all, INVARIANT_ROWS, tokens(plan), plan.block_q)
  end
  local rows_per_warp, in_stage = shape.warp_rows(spec, plan), part_is_in_stage(spec, plan)
  local description = {
    about = string.format("O = %s(score(scale Q K^T)) V%s.", hooks.norm.about, hooks.norm.second_in_words),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }),
    outputs = hooks.norm.outputs,
    regions = { { name = "claims", count = "2 * " .. places }, { name = "parts", count = string.format("%s * %d", places, part_floats(spec, plan)) } },
    steps = {
      { entry = "attn_fwd", grid = { grid, "1", "1" }, threads = 32 * plan.warps, resident = 1,
        registers = math.min(255, family.registers(spec, plan)), early = use.starts_early,
        -- bytes, as mma's work has them where all multiprocessors read, and what a tile of rows takes beside its keys
        work = string.format("%s * %d + %d", keys_of_block, shape.key_bytes(spec) // 2 * (184 + plan.block_q) // 192, 8000) },
    },
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v and o" },
      { "CHUNKS_D", tiles.chunks(spec.d, types.k), shape.is_widened and "16-byte chunks in a row of K" or "16-byte chunks in a row of Q and K" },
      { "CHUNKS_DV", tiles.chunks(spec.dv, types.v), shape.is_widened and "in a row of V" or "in a row of V and O" },
      { "BLOCK_Q", plan.block_q, "rows of a tile, of all query heads of a key/value head" },
      { "BLOCK_KV", plan.block_kv, "keys of a tile" },
      { "THREADS", 32 * plan.warps },
      { "STAGES", plan.stages, "tiles of a team, in flight or read" },
      { "TEAMS", shape.teams(spec, plan), "of warps, which have keys of their own" },
      { "MEMBERS", shape.members(spec, plan), "warps of a team, which have rows of their own" },
      { "WARP_Q", rows_per_warp, "rows of a warp" },
      { "ROWS", rows_per_warp // 8, "rows that a lane has a part of" },
      { "Q_WORDS", shape.q_words(spec, plan), "of Q that a lane has" },
      { "N_KV", plan.block_kv // 8, "tiles of 8 columns of S" },
      { "K_BYTES", k_bytes(spec, plan), "of a tile" },
      { "STAGE_BYTES", stage_bytes(spec, plan), "of a tile of K and one of V" },
      { "PART_COLUMNS", shape.part_columns(spec), "of O, in memory" },
      { "PART_PITCH", shape.part_pitch(spec), "floats from a row of O to the next, in shared memory" },
      { "PART_STEP", in_stage and plan.stages * stage_bytes(spec, plan) or part_bytes(spec, plan), "bytes from a team's part to the next one's" },
      { "STATE_BYTES", 16 * shape.teams(spec, plan) * plan.block_q, "of one of the states, in shared memory" },
      { "PART_FLOATS", part_floats(spec, plan), "of a part: O [BLOCK_Q][PART_COLUMNS], states [states][BLOCK_Q][4]" },
      { "LINE_PLACES", LINE_PLACES, "tiles of rows, or groups of them, whose begin in the line is kept" },
      { "SPAN", (is_invariant and invariant_keys(plan) or SPAN_KEYS) // plan.block_kv, is_invariant and "tiles of keys of a part, at least" or "tiles of keys of a part of few, at least" },
      is_invariant and { "ROWS_WITH_PARTS", INVARIANT_ROWS, "query rows of a sequence up to which its keys have parts" } or
        { "BLOCKS_MOST", MULTIPROCESSORS, "that have places for parts" },
      in_stage and { "SM_PARTS", (plan.stages - 1) * stage_bytes(spec, plan), "O of a team's keys [BLOCK_Q][PART_PITCH], float32, in its last stage" } or nil,
    },
    shared = family.shared(spec, plan),
  }
  if shape.is_widened then
    table.insert(description.constants, { "N_DV", shape.column_tiles(spec), "tiles of 8 columns of O, and chunks of its rows" })
  end
  if is_invariant then table.insert(description.constants, { "PARTS_MOST", INVARIANT_PARTS, "of a tile of rows" }) end
  return description
end

return family
