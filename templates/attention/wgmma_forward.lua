-- wgmma_forward.lua: attention on the warpgroup products and TMA of sm_90a. A block stays on its
-- multiprocessor and takes tiles of block_q query rows in turn. One warpgroup moves data; each of the
-- others owns 64 rows, whose O, S and P stay in registers.
local family = { template = "attention/wgmma_forward.cut", library = { "tile/tiles.cut", "tile/claims.cut" } }
family.generation = 3

local mma = run("attention/mma.lua")
local ROW = 128 -- bytes of a row of a tile in shared memory: 64 columns, swizzled

function family.applies(spec, arch)
  if not machine.wgmma then return false, "needs sm_90a, not " .. arch end
  -- 2 terms of tanh spill 32 bytes, 4 of them 8 to 812 at any d
  local curved = hooks.score.tanhs > 1 and not hooks.score.bends_scaled
  if hooks.large or curved or hooks.long and math.max(spec.d, spec.dv) > 128 then return false, "leaves large expressions to mma" end
  return true
end

-- Blocks of 64 columns, and columns that a product takes.
local function blocks(width) return cdiv(width, 64) end
local function columns(width) return cdiv(width, 16) * 16 end

local function rows_bytes(rows, width) return rows * ROW * blocks(width) end

-- The score's input of which each warp keeps its 16 rows of a tile, if there is one: it loads them itself,
-- the next ones when it has read these. Where tiles are left out it would have to know which comes next.
local function tiled_input() return not hooks.mask.skips.keys and hooks.input.tiled or nil end

-- A plan with parts takes the last tiles of rows, where they are fewer than blocks, in parts (wgmma_parts.cut), of few
-- tiles up to so many of each; all rows must see as many keys. Places in the workspace, two for each multiprocessor, and
-- the least tiles of keys that a block takes of them, and the least that it is spared: thought to take as long as to join
-- parts, which was not timed by itself.
local PART_PLACES, PART_TILES = 264, 8
local function has_parts(plan) return (plan.parts or 0) > 1 end
-- Floats of a warpgroup's part: of each thread O and its rows' states.
local function part_floats(spec) return 128 * (columns(spec.dv) // 2 + 4) end

-- Blocks claim tiles of rows, or take them in turn: parts, and where no mask has bounds those that read tiles of an input,
-- which heads or batches may share side by side. Without a mask, in turn -> claimed, n 512, 1024, 2048, 8192, on two cards:
-- d 256 0.1141 to 0.1153 ms -1.1 and -0.4 %, 0.192 -1.1 and -0.7 %, 0.355 -0.9 and -0.7 %, 1.342 -0.3 %; d 64 0.1358 -1.5
-- %, 0.237 -0.6 %, 0.448 -0.2 %, 1.69 -0.2 %, n 16384 -4.5 and +8 %, by the card's clock more than by them (`candidates`);
-- d 192, n 512 0.1168 -0.6 %, 192/128, n 1024 0.1567 -0.1 %; d 96 by 192 rows none. But d 96 and 128 by 128 rows, n 512
-- 0.1220, 0.1073 -> 0.1266, 0.1100, n 1024 0.1883 -> 0.1910: 15.5 waves of tiles, of which those in turn end together; the
-- same with claims one tile ahead (H200, 2026-11-25). Masks without bounds, of documents and the like, were not timed.
local function has_claims(spec, plan)
  if has_parts(plan) then return false end
  return hooks.mask.edges > 0 or not tiled_input() and (spec.d > 128 or plan.block_q > 128)
end

-- Slots for Q of 64 rows, which their O leaves by, two for each warpgroup where they fit, then for a warp's part of an
-- input, two where they fit; what is left of a block's memory goes to Q (a third slot of d 256, for two warpgroups: n 512,
-- 1024, 4096, 16384 full 0.116, 0.196, 0.683, 2.75 -> 0.115, 0.194, 0.681, 2.67 ms, causal 0.0917, 0.127, 0.367, 1.339 ->
-- 0.0893, 0.124, 0.363, 1.340; d 192, n 4096 0.650 -> 0.645, causal 0.357 -> 0.352; H200, 2026-11-25).
local function slots(spec, plan)
  local groups, q, input = plan.block_q // 64, rows_bytes(64, math.max(spec.d, spec.dv)), tiled_input() and 2 * plan.block_q * plan.block_kv or 0
  local kv = plan.stages * (rows_bytes(plan.block_kv, spec.d) + rows_bytes(plan.block_kv, spec.dv))
  local free = mma.shared_limit() - 2560 - groups * q - kv - input
  local all = free >= groups * q
  local more_input = free - (all and groups * q or 0) >= input
  local more_q = all and groups or math.max(0, (free - (more_input and input or 0)) // q)
  return { q = groups + more_q, input = more_input and 2 or 1 }
end

function family.shared(spec, plan)
  local groups, stages, slots = plan.block_q // 64, plan.stages, slots(spec, plan)
  local q, input = slots.q, tiled_input() and slots.input or 0
  local blocks = {
    { "SM_Q", q * rows_bytes(64, math.max(spec.d, spec.dv)), "Q [Q_SLOTS][D / 64][64][64], then O" },
    { "SM_K", stages * rows_bytes(plan.block_kv, spec.d), "K [stages][D / 64][BLOCK_KV][64]" },
    { "SM_V", stages * rows_bytes(plan.block_kv, spec.dv), "V [stages][DV / 64][BLOCK_KV][64]" },
    { "SM_BARRIERS", 8 * (2 * groups + 2 * q + 4 * stages + 5 + 4 * groups * input), "Q full [2][GROUPS], Q empty, O full [Q_SLOTS]; K full, empty, V full, empty [stages]; job full, empty [2]; claim" .. (input > 0 and "; input full [INPUT_STAGES][GROUPS][4]" or "") },
    { "SM_JOBS", 2 * 32, "q0, h, b, g, first and last k0, " .. (has_parts(plan) and "shares of the keys, number of this one << 16 and its place [2]" or "-, - [2]") },
    { "SM_END", 1008, "what rounding the base to 1024 bytes may take" },
  }
  if has_parts(plan) then
    table.insert(blocks, #blocks, { "SM_PARTS", 3 * 32, "the block's jobs that are parts, and none [3]" })
    table.insert(blocks, #blocks, { "SM_WHOLE", 16, "how many tiles of rows are whole" })
    table.insert(blocks, #blocks, { "SM_LAST", cdiv(q, 4) * 16, "whether the slot has O, not a part of it [Q_SLOTS]" })
  end
  if input > 0 then
    local of_input = { "SM_INPUT", input * 2 * plan.block_q * plan.block_kv, tiled_input().name .. " [INPUT_STAGES][GROUPS][4][BLOCK_KV / INPUT_COLUMNS][16][INPUT_COLUMNS]" }
    table.insert(blocks, 4, of_input)
  end
  return blocks
end

-- Of a thread that multiplies: S, O, P, the rows' state, addresses and what a score takes, or 4 to 270 bytes
-- spill (NVRTC 13.0: a cap, inputs by key and most masks but a plain one at any d with 192 rows, a dense input
-- or a cap of more than the product with 128 keys at d 128).
function family.registers(spec, plan)
  local scores, score, mask, input, more = plan.block_kv // 2, hooks.score, hooks.mask, hooks.input, 0
  if tiled_input() then
    more = 16
  elseif input.pairwise or score.bends and not score.bends_scaled then
    local wide = plan.block_kv > 96 and (hooks.long or score.bends)
    local close = columns(spec.dv) > (plan.block_kv > 96 and 96 or plan.block_kv > 64 and 128 or 256) -- a table at d 192: 24, 104: 160
    more = close and 3 * scores or wide and 2 * scores or 7 * scores // 8
  elseif input.keyed or score.bends and not score.ranged_cap or mask.skips.keys or mask.given or mask.edges > 0 and not (score.linear or score.sloped) then
    more = 16
  end
  -- 8 to 96 bytes of scores but a plain one at d 128/192, 128/256, there and at 72 and 80 of a mask by numbers of each key
  local wider = spec.dv > spec.d and columns(spec.dv) > 128 and plan.block_kv > 64
  local looked_up = mask.reads and not mask.exact
  if wider and (looked_up or not score.linear) then more = 2 * scores end
  -- 8 to 40 bytes with 192 rows: narrow heads, a score at d 72 and 80, or under a mask that leaves no tile whole
  local holes = mask.tile("q0", "q1", "k0", "k1", "h").always == "0"
  local tight = not score.linear and not tiled_input() and (columns(spec.dv) > 64 and plan.block_kv > 64 or holes) or
    looked_up and columns(spec.dv) == 80
  -- An input by key: 480 to 800 bytes of one number for each at d 128; of any, where keys are masked one by one, 160
  -- at d 96, 24 to 32 at d 192
  local by_key = plan.block_kv > 96 and columns(spec.dv) > 96 and not input.pairwise
  local one_by_one = not mask.exact and columns(spec.dv) > (plan.block_kv > 96 and 64 or plan.block_kv > 64 and 160 or 256)
  if input.keyed and (by_key or one_by_one) then more = 2 * scores end
  -- 8 to 1220 bytes of |k - p|, (k - p)^2 and their like
  if score.uneven then
    local wide = plan.block_kv > 96 or plan.block_kv > 64 and (columns(spec.dv) > (input.keyed and 64 or 96) or score.chooses)
    local ragged = columns(spec.dv) == 240 -- |k - p|: 8
    more = math.max(more, wide and 3 * scores or ragged and 48 or holes and columns(spec.dv) > 192 and 40 or 16)
  end
  -- 16 to 48 bytes of s * s, -s, exp(s) and their like at d 24 to 48, 8 to 24 of ALiBi at d 24 to 40, 16 of s + tanh(s) to 32,
  -- 8 at 104, 8 of s + k / 100 in f16 at d 24, of an input at d 32, 32 of one by key at d 64/128
  local factored = not (score.linear or score.additive or score.bends)
  local narrow = columns(spec.dv) < (#input.names > 0 and 48 or 32) or factored and columns(spec.dv) < 64 and plan.block_kv > 96
  narrow = narrow or input.keyed and spec.d <= 64 and columns(spec.dv) > 96
  narrow = narrow or (score.sloped or score.additive and not score.linear) and columns(spec.dv) < 64 or score.bends and not score.bends_scaled and (columns(spec.dv) < 48 or columns(spec.dv) > 96)
  if plan.block_q > 128 and (narrow or tight or score.uneven or plan.block_kv > 96 and more > 0) then more = 64 end
  return scores + columns(spec.dv) // 2 + scores // 2 + 28 + more
end

-- Registers that each thread of a block is launched with.
local function launched(plan) return 65536 // (32 * plan.warps) // 8 * 8 end

-- Registers of the threads that move data, and of the others: what these leave of it. Movers that look for keys no row
-- sees spill 12 bytes with 24 (NVRTC 13.0). Parts of more than 192 columns of V spill 8 at d 40, and are 2 % slower at d
-- 256 (n 8192: 829 beside 847 TFLOP/s); plain plans at d 256, 192/128 and parts there are as fast with either (H200,
-- 2026-11-25).
local function split(plan)
  local large_parts = has_parts(plan) and columns(spec.dv) > 192
  local few, groups = (plan.block_q > 128 or large_parts) and 32 or hooks.mask.skips.keys and 40 or 24, plan.block_q // 64
  return few, (launched(plan) * (groups + 1) - few) // groups // 8 * 8
end

-- H200, bf16, 16384 tokens, full n 1024 / 8192, causal 1024 / 8192, TFLOP/s, 2026-11-20. 24 and 240
-- registers are 1 % faster than 40 and 232 (d 128: 704 / 767 beside 691 / 764). Under a mask a fixed turn of
-- tiles is slower than claims (d 256 causal: 450 / 565), and sections of heads for half the L2 cache, masks by
-- each row's range and warpgroups that skip keys which only others see are worth 5 to 20 % (before them 301 /
-- 565 at d 64, 511 / 710 at d 128, 488 / 737 at d 256). A launch that starts beside the end of the one before
-- saves 1.1 us and more where nothing stands between them (n 512, b 1: 10.2 -> 9.1 us at d 128, 8.7 -> 7.5 at d 64;
-- d 128, b 16, n 1024: 201 -> 196.3; told so at the start of the one before instead of by its end, 198.6, and b 32,
-- n 512 takes 113.5 beside 110.5). Under a mask, where the claims' word was set to 0 by a launch of its own, 1 us less
-- without it (causal n 512: 330 -> 333 TFLOP/s at d 64, 369 -> 371 at d 128, 2026-11-23); no more where only those who
-- load wait for the grid before, or blocks without more rows tell the next. Slower: a flat loop, the first S of the
-- next rows beside the last O of these (full n 512 -1.6 %, from 2048 on +0.5 %, causal -2 to -5 %).
-- Window 1023, d 64, n 8192, 2026-11-22 and 23: 0.256 ms, 10 us of it a launch's own; 0.194 by pairs at the plain
-- kernel's rate, 0.217 by tiles of 64 rows and 128 keys. The rest is rows' ends: of 64 rows' 22 700 clocks 7.4 tiles take
-- 2360 each (full 2216; two warpgroups 1990, one 1510), the first tile and the ends 5240: its weights 2030 (unmasked
-- 1300) and S 415, tiles that only others see 250 to 890, words and Q of the rows 760, last products 500, O 412.
-- Slower, of 0.265: fixed turns instead of claims 0.276, masking by groups of columns that a vote leaves out 0.268, rows
-- handed to warpgroups from the last to the first 0.269, no turns 0.283, a lock in shared memory instead, which no tile
-- that is left takes, 0.302, 64 keys with 2 to 8 tiles in flight 0.295. No faster: ends beside the last products and the
-- next S, with it turns held until O is there, warpgroups that begin 1500 to 6500 clocks apart. The half tiles at both
-- ends that no row sees left out, 0.258, but causal n 8192 1.7 % slower.
-- Of 0.259, with first tiles in halves: the next rows' words read beside the last products 0.261; masked pairs as what
-- the product is added to 0.264; first tiles in turn 0.262; tiles of others without turns and 4 in flight 0.260.
-- Of 0.256, with all heads in a section: 3 or 4 tiles in flight 0.260, 0.257; warpgroups a turn or more behind one
-- another by 4 and 5 tiles in flight, turns passed at the rows' ends, 0.254 to 0.267; the weights of far halves that no
-- row sees left out 0.256, masks of the one half that has an edge 0.257 to 0.274; tensor maps fetched before, no
-- less; K and V of 4 heads for 64 of Q 0.254; 256 rows and 64 keys 0.264; keys that no rows before have seen fetched to
-- the L2 cache when the rows begin 0.258, all their keys 0.277; turns beside 3 or 4 tiles in flight 0.263. With claims
-- that need no launch 0.254; with some or all of the short rows first 0.254 to 0.256.
-- Of these, by the clock of each block (2026-11-24): S of the first tiles is there 3.7 us after the launch, 2 us of it for
-- K and Q of all blocks at once; a job takes 12.7 us; the last block ends 1.6 us after the mean one, and 2.9 us go by
-- between launches. Warps seldom wait for code (1.2 % of ncu's samples). No faster: a job's words behind the barrier of
-- its Q alone (d 64 1 % slower, d 128 1 % faster), turns of passed tiles before the waits for them, tests of mixed tiles
-- behind the end of a turn, one text for whole and mixed tiles, one partial sum a row, K and V without evict_last.
-- Two blocks that load half a tile of K and V each for both, without release arrives (2026-11-25), are slower: d 64 full n
-- 1024, 8192 0.239, 1.66 -> 0.270, 1.76 ms, d 128 n 1024, 8192, 16384 0.189, 1.350, 2.804 -> 0.195, 1.360, 2.817, d 256 n
-- 4096, 16384 0.673, 2.669 -> 0.671, 2.717. The query heads of a KV head in a block, 64 rows of each (32 heads over 8,
-- causal): d 128 n 1024, 2048 0.2369, 0.4059 -> 0.2357, 0.4040, n 8192 1.437 -> 1.431 with 128 rows, where 192 take 1.401;
-- d 64 n 2048, four heads 0.2524 -> 0.2470: left out, as they would have to divide a shape's heads.
-- Without a mask, d 256, n 16384, the card has no power for its clock: after a pause 65 ms of launches run at 1980 MHz and
-- 832 TFLOP/s, what follows at 1605 and 729 (cuDNN: 56 ms at 752, then 675), so that 25 launches of 2.6 ms are timed in
-- either state or between them. 400 in a row, 716 to 721 whatever is changed: fixed turns 716, parts 717, claims 716, K
-- and V without evict_last 715, 80 keys, whose plan is 0.5 % slower before that, 721 (cuDNN 658; H200, 2026-11-25).
function family.candidates(spec, arch)
  local plans = {
    { block_q = 192, block_kv = 128, stages = 2, warps = 16 }, -- d 64: 519 / 667, 373 / 589
    { block_q = 128, block_kv = 128, stages = 2, warps = 12 }, -- d 128: 707 / 782, 526 / 752; d 64: 439 / 481
    { block_q = 128, block_kv = 96, stages = 2, warps = 12 }, -- d 192; d 128: 644 / 719, d 64: 406 / 450
    { block_q = 128, block_kv = 64, stages = 2, warps = 12 }, -- d 256: 709 / 844, 524 / 827; d 128: 620 / 686
  }
  -- d 128 from n 2048 on: 811 / 785 at 8192 (80 keys: 800 / 769, 3 stages 792 / 760); d 96, n 4096: 695, causal 613
  if columns(spec.dv) > 96 and spec.d <= 128 then
    table.insert(plans, 2, { block_q = 192, block_kv = 64, stages = 2, warps = 16 })
    -- rows that see few keys: window 1023 at n 8192 0.196 ms beside 0.197; full 1.431 beside 1.385
    if hooks.mask.edges > 1 and not tiled_input() then table.insert(plans, 2, { block_q = 192, block_kv = 64, stages = 4, warps = 16 }) end
  end
  -- d 64: 3 % slower than 192 rows, but few lengths leave rows of 256 over: n 512, 1024, 8192 full 0.072, 0.123, 1.70 ms
  -- beside 0.075, 0.133, 1.64, causal 0.059, 0.082, 0.884 beside 0.062, 0.093, 0.864 (2026-11-22). ALiBi under causal, n
  -- 1024, 8192: 0.178, 0.979 beside 0.214, 0.965 (128 rows 0.219, 1.168), window 1023 at 8192 0.307 beside 0.317 (0.369),
  -- full 1.86 beside 1.72 (2026-11-23)
  if columns(spec.dv) <= 64 and (hooks.score.linear or hooks.score.sloped and hooks.mask.edges > 0) then table.insert(plans, 2, { block_q = 256, block_kv = 64, stages = 2, warps = 20 }) end
  -- d 96, n 4096: 734, causal 638, 128 rows 659, 607; d 64 with a bias 1.38 ms, 128 rows 1.57; with a
  -- cap by its range 2.71, 128 rows 3.01, and by its polynomial, n 4096, 1.29, 128 keys 1.15, 128 rows 1.35
  local scored = hooks.score.bends or tiled_input()
  if columns(spec.dv) <= 96 and (columns(spec.dv) > 64 or scored) then table.insert(plans, 2, { block_q = 192, block_kv = 96, stages = 2, warps = 16 }) end
  local function that_fit(plans) return mma.that_fit(family, spec, arch, plans, function(plan) return select(2, split(plan)) end) end
  -- in parts, where tiles of rows make 10.4 waves: d 128, n 8192, 16384 1.352, 2.85 -> 1.309, 2.63 ms; 0.7 waves: d 64, one
  -- head, n 16384 0.160 -> 0.116; 7.8 waves: d 256, n 8192, 16384 1.317, 2.622 -> 1.311, 2.592, 192/128, n 8192 1.041 ->
  -- 1.033, but shorter ones do not make up for the joins: d 256, n 4096 0.667 -> 0.672; 21.3: d 64, n 4096 0.871 -> 0.865.
  -- Three parts of each tile instead of spans, where there is room: one head 0.119, none at 7.8 waves. What finds the parts
  -- is behind the start, and ptxas puts the main loop in another order: d 128, n 1024 0.189 -> 0.194, so that it is a plan
  -- of its own (H200, 2026-11-25)
  local fit, unfit = that_fit(plans)
  -- Of other scores 8 to 160 bytes would spill beside, of these at more than 160 columns of V 20 to 32; 8 of masks that
  -- are tested one by one
  local score = hooks.score
  local roomy = score.linear or score.ranged_cap or columns(spec.dv) <= 160 and (score.sloped or hooks.input.by_distance)
  local shows_all = hooks.mask.tile("q0", "q1", "k0", "k1", "h").always == "1"
  if fit[1] and roomy and shows_all and not hooks.input.tiled then
    local first = fit[1]
    local parted = that_fit({ { block_q = first.block_q, block_kv = first.block_kv, stages = first.stages, warps = first.warps, parts = 16 } })
    table.move(parted, 1, #parted, #fit + 1, fit)
  end
  return fit, unfit
end

-- Work of a block for a key, in mma_forward.lua's units: half of what mma takes, in 140ths of it by what the
-- candidates measure. An input that differs from pair to pair is loaded element by element, which mma does
-- better (d 64: 3.75 ms beside 2.18), or if it can be in tiles (1.38 ms); a table of distances is read from the
-- first cache (d 128: 0.97 ms beside 1.72). The host device runs 3 to 4 times the threads.
local function work_of_key(plan)
  local rows, keys = plan.block_q, plan.block_kv
  local work = rows > 192 and 62 or rows > 128 and (keys == 128 and 60 or keys == 96 and (columns(spec.dv) > 64 and 63 or hooks.score.ranged_cap and 67 or 57) or plan.stages > 2 and 65 or 67) or keys == 128 and 70 or 80
  if keys == 64 and (hooks.score.bends or tiled_input()) then work = work + 4 end -- d 128: 1.95 ms beside 1.90, 0.95 beside 0.93
  local read = hooks.input.pairwise and (hooks.input.by_distance and "3" or "6") or "2"
  local input = tiled_input() and "(3 + 3 * min(nk % 8, 1))" or read
  return string.format("%d * %s", rows * work * (arch == "host" and 8 or 1) // 16, input)
end

function family.describe(spec, plan)
  local few, many = split(plan)
  local slots, tiled, columns_of_box = slots(spec, plan), tiled_input(), plan.block_kv % 64 == 0 and 64 or 32
  local groups, claimed = plan.block_q // 64, has_claims(spec, plan)
  local tiles, regions, share = string.format("cdiv(nq, %d) * h * b", plan.block_q), {}, nil
  if claimed then regions[1] = { name = "claims", count = "2" } end
  local seen_together = hooks.mask.skips.keys and plan.block_q or 64 -- rows that go over the same keys
  local work = string.format("(%s + %d) * %s / 10", hooks.mask.keys_seen, hooks.mask.edges * (seen_together + plan.block_kv) // 2, work_of_key(plan))
  if has_parts(plan) then -- places for as many as the kernel may make; for the model, as if each tile had so many or three
    local by_keys = string.format("nk / %d", PART_TILES * plan.block_kv)
    local by_tiles = string.format("%d / max(1, %s)", PART_PLACES // 2, tiles)
    local places = string.format("min(%d, %s * %d) * min(1, nk / %d)", PART_PLACES, tiles, plan.parts + 1, (2 * PART_TILES - 1) * plan.block_kv) -- parts, and one that a tile may leave out
    regions[1] = { name = "claims", count = string.format("%s * %d", places, 2 * groups) }
    regions[2] = { name = "parts", count = string.format("%s * %d", places, groups * part_floats(spec)) }
    share = string.format("max(max(1, min(min(%d, %s), %s)), 3 * min(1, %s / 3))", plan.parts, by_tiles, by_keys, by_keys)
    work = string.format("nk * %s / 10 / %s + min(1, %s) * %d", work_of_key(plan), share, by_tiles, PART_TILES * plan.block_kv * plan.block_q)
  end
  local function map(name, tensor, rows) return { name = name, tensor = tensor, columns = 64, rows = rows, swizzle = ROW } end
  local description = {
    about = string.format("O = %s(score(scale Q K^T)) V, and %s of each row.", hooks.norm.about, hooks.norm.second),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }),
    outputs = { "o", hooks.norm.second .. "?" },
    regions = regions,
    maps = { map("q_map", "q", 64), map("k_map", "k", plan.block_kv), map("v_map", "v", plan.block_kv), map("o_map", "o", 64) },
    steps = {
      { entry = "attn_fwd", grid = { tiles .. (share and " * " .. share or ""), "1", "1" },
        threads = 32 * plan.warps, registers = launched(plan), resident = 1, early = true,
        work = work },
    },
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v and o" },
      { "BLOCK_Q", plan.block_q, "query rows of a block" },
      { "BLOCK_KV", plan.block_kv, "keys of a tile" },
      { "GROUPS", groups, "warpgroups that multiply, of 64 rows each" },
      { "STAGES", plan.stages, "tiles of K and of V in flight" },
      { "Q_SLOTS", slots.q, "of 64 rows of Q" },
      { "INPUT_STAGES", tiled and slots.input or 0, "of an input of the score" },
      { "CLAIMED", claimed and 1 or 0, "0: blocks take tiles of rows in turn" },
      { "INPUT_COLUMNS", columns_of_box, "side by side of it" },
      { "MOVER_REGISTERS", few },
      { "REGISTERS", many },
      { "D_STEPS", columns(spec.d), "columns of Q and K that are multiplied" },
      { "DV_COLUMNS", columns(spec.dv), "columns of O" },
      { "Q_BYTES", rows_bytes(64, math.max(spec.d, spec.dv)), "of a warpgroup's Q" },
      { "K_BYTES", rows_bytes(plan.block_kv, spec.d), "of a tile" },
      { "V_BYTES", rows_bytes(plan.block_kv, spec.dv), "of a tile" },
    },
    shared = family.shared(spec, plan),
  }
  if has_parts(plan) then
    local of_parts = {
      { "PARTS_MAX", plan.parts, "of each of few tiles of rows" },
      { "PART_PLACES", PART_PLACES, "of them, in the workspace" },
      { "PART_TILES", PART_TILES, "of keys that a block takes of them, and is spared, at least" },
      { "PART_FLOATS", part_floats(spec), "of a warpgroup's" },
    }
    table.move(of_parts, 1, #of_parts, #description.constants + 1, description.constants)
  end
  if tiled then
    local input_map = { name = "input_map", tensor = tiled.name, columns = columns_of_box, rows = 16, swizzle = 2 * columns_of_box }
    table.insert(description.maps, input_map)
  end
  return description
end

return family
