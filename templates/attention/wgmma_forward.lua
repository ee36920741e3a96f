-- wgmma_forward.lua: attention on the warpgroup products and TMA of sm_90a. A block stays on its
-- multiprocessor and takes tiles of block_q query rows in turn. One warpgroup moves data; each of the
-- others owns 64 rows, whose O, S and P stay in registers.
local family = { template = "attention/wgmma_forward.cut", library = { "tile/tiles.cut" } }

local mma = run("attention/mma.lua")
local ROW = 128 -- bytes of a row of a tile in shared memory: 64 columns, swizzled

function family.applies(spec, arch)
  if arch ~= "host" and arch ~= "sm_90a" then return false, "needs sm_90a, not " .. arch end
  -- 4 terms of tanh spill at d 192/128
  if hooks.large or hooks.long and math.max(spec.d, spec.dv) > 128 then return false, "leaves large expressions to mma" end
  return true
end

-- Blocks of 64 columns, and columns that a product takes.
local function blocks(width) return cdiv(width, 64) end
local function columns(width) return cdiv(width, 16) * 16 end

local function rows_bytes(rows, width) return rows * ROW * blocks(width) end

-- Slots for a warpgroup's Q, which its O leaves by: two where they fit.
local function q_stages(spec, plan)
  local q = rows_bytes(plan.block_q, math.max(spec.d, spec.dv))
  local kv = plan.stages * (rows_bytes(plan.block_kv, spec.d) + rows_bytes(plan.block_kv, spec.dv))
  return 2 * q + kv + 2048 <= mma.shared_limit(arch) and 2 or 1
end

function family.shared(spec, plan)
  local groups, stages, q = plan.block_q // 64, plan.stages, q_stages(spec, plan)
  return {
    { "SM_Q", q * rows_bytes(plan.block_q, math.max(spec.d, spec.dv)), "Q [Q_STAGES][GROUPS][D / 64][64][64], then O" },
    { "SM_K", stages * rows_bytes(plan.block_kv, spec.d), "K [stages][D / 64][BLOCK_KV][64]" },
    { "SM_V", stages * rows_bytes(plan.block_kv, spec.dv), "V [stages][DV / 64][BLOCK_KV][64]" },
    { "SM_BARRIERS", 8 * (3 * q * groups + 4 * stages + 5), "Q full, Q empty, O full [Q_STAGES][GROUPS]; K full, empty, V full, empty [stages]; job full, empty [2]; claim" },
    { "SM_JOBS", 2 * 32, "q0, h, b, -, first and last k0, -, - [2]" },
    { "SM_END", 1008, "what rounding the base to 1024 bytes may take" },
  }
end

-- Of a thread that multiplies: S, O, P, the rows' state, addresses and what a score takes, or 4 to 270 bytes
-- spill (NVRTC 13.0: a cap, inputs by key and most masks but a plain one at any d with 192 rows, a dense input
-- or a cap of more than the product with 128 keys at d 128).
function family.registers(spec, plan)
  local scores, score, mask, input, more = plan.block_kv // 2, hooks.score, hooks.mask, hooks.input, 0
  if input.pairwise or score.bends and not score.bends_scaled then
    local wide = plan.block_kv > 96 and (hooks.long or score.bends)
    more = wide and 2 * scores or 7 * scores // 8
  elseif input.keyed or score.bends or mask.skips.keys or mask.given or mask.edges > 0 and not score.linear then
    more = 16
  end
  if plan.block_q > 128 then more = 4 * more end
  return scores + columns(spec.dv) // 2 + scores // 2 + 28 + more
end

-- Registers of the threads that move data, and of the others: what the block was launched with. Movers
-- that look for keys no row sees spill 12 bytes with 24 (NVRTC 13.0).
local function split(plan)
  if plan.block_q > 128 then return 32, 160 end
  if hooks.mask.skips.keys then return 40, 232 end
  return 24, 240
end

-- H200, bf16, 16384 tokens, full n 1024 / 8192, causal 1024 / 8192, TFLOP/s, 2026-11-20. 24 and 240
-- registers are 1 % faster than 40 and 232 (d 128: 704 / 767 beside 691 / 764). Under a mask a fixed turn of
-- tiles is slower than claims (d 256 causal: 450 / 565), and sections of heads for half the L2 cache, masks by
-- each row's range and warpgroups that skip keys which only others see are worth 5 to 20 % (before them 301 /
-- 565 at d 64, 511 / 710 at d 128, 488 / 737 at d 256).
function family.candidates(spec, arch)
  return mma.that_fit(family, spec, arch, {
    { block_q = 192, block_kv = 128, stages = 2, warps = 16 }, -- d 64: 519 / 667, 373 / 589
    { block_q = 128, block_kv = 128, stages = 2, warps = 12 }, -- d 128: 704 / 767, 539 / 755; d 64: 439 / 481
    { block_q = 128, block_kv = 96, stages = 2, warps = 12 }, -- d 192; d 128: 644 / 719, d 64: 406 / 450
    { block_q = 128, block_kv = 64, stages = 2, warps = 12 }, -- d 256: 709 / 844, 524 / 827; d 128: 620 / 686
  }, function(plan) return select(2, split(plan)) end)
end

-- Work of a block for a key, in mma_forward.lua's units: half of what mma takes, in 14ths of it by what the
-- candidates measure. An input that differs from pair to pair is loaded element by element, which mma does
-- better (d 64: 3.75 ms beside 2.18). The host device runs 3 to 4 times the threads.
local function work_of_key(plan)
  local work = plan.block_q > 128 and 6 or plan.block_kv == 128 and 7 or 8
  return plan.block_q * work * (hooks.input.pairwise and 6 or 2) * (arch == "host" and 8 or 1) // 16
end

function family.describe(spec, plan)
  local few, many = split(plan)
  local groups, claimed = plan.block_q // 64, hooks.mask.edges > 0
  local function map(name, tensor, rows) return { name = name, tensor = tensor, columns = 64, rows = rows, swizzle = ROW } end
  local description = {
    about = string.format("O = %s(score(scale Q K^T)) V, and %s of each row.", hooks.norm.about, hooks.norm.second),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }),
    outputs = { "o", hooks.norm.second },
    regions = claimed and { { name = "claims", count = "1" } } or {},
    maps = { map("q_map", "q", 64), map("k_map", "k", plan.block_kv), map("v_map", "v", plan.block_kv), map("o_map", "o", 64) },
    steps = {
      { entry = "attn_fwd", grid = { string.format("cdiv(nq, %d) * h * b", plan.block_q), "1", "1" },
        threads = 32 * plan.warps, registers = plan.block_q > 128 and 128 or 168, resident = 1,
        work = string.format("(%s + %d) * %d", hooks.mask.keys_seen, hooks.mask.edges * (plan.block_q + plan.block_kv) // 2,
                             work_of_key(plan)) },
    },
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v and o" },
      { "BLOCK_Q", plan.block_q, "query rows of a block" },
      { "BLOCK_KV", plan.block_kv, "keys of a tile" },
      { "GROUPS", groups, "warpgroups that multiply, of 64 rows each" },
      { "STAGES", plan.stages, "tiles of K and of V in flight" },
      { "Q_STAGES", q_stages(spec, plan), "of Q" },
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
  if claimed then table.insert(description.steps, 1, { zero = "claims" }) end
  return description
end

return family
