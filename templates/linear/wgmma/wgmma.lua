-- wgmma.lua: what the passes of linear's wgmma family share: how tiles lie in shared memory, and who has which registers.
local wgmma = {}
local mma, linear, barriers = run("attention/mma/mma.lua"), run("linear/linear.lua"), run("tile/barriers.lua")

-- Does the pass end with a norm, which wants all columns of a row in a cluster?
local has_all = spec.pass == "forward" and hooks.norm ~= nil and linear.fits_cluster
wgmma.has_all = has_all

-- Does its product leave sums as they are, for a norm that is a step of its own?
wgmma.leaves_sums = spec.pass == "forward" and hooks.norm ~= nil and not has_all

-- Blocks of a cluster, and the columns of each where it has all of them: slabs of 64, up to 256. The last block has what is left,
-- which may be none.
wgmma.CLUSTER = not has_all and 2 or spec.width_out <= 512 and 2 or spec.width_out <= 1024 and 4 or 8
wgmma.COLUMNS = cdiv(cdiv(spec.width_out, wgmma.CLUSTER), 64) * 64
wgmma.is_ragged = wgmma.CLUSTER * wgmma.COLUMNS > spec.width_out
wgmma.RANKS = (1 << wgmma.CLUSTER) - 1 -- all of them, as multicasts want them

function wgmma.applies(spec, arch)
  if not machine.wgmma then return false, "needs sm_90a, not " .. arch end
  if hooks.is_gated and spec.width_out % 64 > 0 then return false, "leaves gated pairs to mma whose values do not begin at a multiple of 64" end
  return true
end

-- The map of a tensor, which moves in boxes of 64 columns and 64 rows, or so many.
function wgmma.map(tensor, rows) return { name = tensor .. "_map", tensor = tensor, columns = 64, rows = rows or 64, swizzle = 128 } end

-- Bytes of a stage: 64 of k of block_q rows and block_kv columns.
local function a_bytes(plan) return plan.block_q * 128 end
local function b_bytes(plan) return plan.block_kv * 128 end
local function bias_bytes(plan) return 2 * plan.block_kv end
local function groups(plan) return plan.block_q // 64 end

-- Does each warpgroup multiply tiles of its own, in turn, so that one's results leave beside the other's products? A tile of 256
-- columns takes all of a warpgroup's registers for 64 rows; and blocks that exchange rows do so in step.
function wgmma.alternates(plan) return spec.pass == "forward" and not has_all and not hooks.is_gated and plan.block_kv <= 128 end

function wgmma.barriers(plan)
  local n = groups(plan)
  return run("linear/wgmma/barriers.lua") { stages = plan.stages, groups = n, cluster = wgmma.CLUSTER, sharers = wgmma.alternates(plan) and 1 or n }
end

-- Slabs of a warpgroup: all of a tile where a residual lies in them before; else one leaves while the next one is filled.
local function slabs() return spec.pass == "forward" and hooks.has_residual and not wgmma.leaves_sums and 4 or 2 end

function wgmma.shared(spec, plan)
  local blocks = {
    { "SM_A", plan.stages * a_bytes(plan), "A [STAGES][BLOCK_M][64], or [STAGES][BLOCK_M / 64][64 of k][64]" },
    { "SM_B", plan.stages * b_bytes(plan), "B [STAGES][BLOCK_N][64], or [STAGES][BLOCK_N / 64][64 of k][64]" },
    { "SM_SLABS", groups(plan) * slabs() * 8192, "64 columns of a warpgroup's rows of C, on their way [GROUPS][SLABS][64][64]" },
    barriers.row(wgmma.barriers(plan)),
    { "SM_END", 1008, "what rounding the base to 1024 bytes may take" },
  }
  if has_all then
    table.insert(blocks, 4, { "SM_PARTS", 2 * wgmma.CLUSTER * plan.block_q * 8, "means and squares of rows of each block's columns [2][CLUSTER][BLOCK_M][2], float32" })
    table.insert(blocks, #blocks, { "SM_VECTORS", 3 * bias_bytes(plan), "bias, gamma and beta of the columns [3][BLOCK_N]" })
  elseif spec.pass == "forward" and hooks.has_bias and not wgmma.leaves_sums then table.insert(blocks, #blocks, { "SM_BIAS", 2 * bias_bytes(plan), "of a tile's columns [2][BLOCK_N]" })
  end
  return blocks
end

-- Registers of a thread that multiplies, coarsely: its sums and addresses.
function wgmma.registers(spec, plan) return plan.block_kv // 2 * (wgmma.alternates(plan) and groups(plan) or 1) + 48 end

local function launched(plan) return math.min(248, 65536 // (32 * plan.warps) // 8 * 8) end
local FEW = 24
-- Does the mover give registers away? A block of few warps has enough for all.
function wgmma.moves_registers(plan) return launched(plan) < 240 end
local function many(plan) return (launched(plan) * (groups(plan) + 1) - FEW) // groups(plan) // 8 * 8 end

-- The plans of a list that fit, and the others.
function wgmma.that_fit(family, spec, arch, plans)
  local fit, unfit = mma.that_fit(family, spec, arch, plans, function(plan) return math.min(many(plan), 240) end)
  for i = #fit, 1, -1 do
    local threads = 32 * fit[i].warps * wgmma.CLUSTER
    if threads > machine.cluster_threads then
      fit[i].why = string.format("its clusters have %d threads, those of %s at most %d", threads, arch, machine.cluster_threads)
      unfit[#unfit + 1] = table.remove(fit, i)
    end
  end
  return fit, unfit
end

-- Tiles of a product, in blocks, a number or a text as `rows` is: of so many rows, and columns, `wide` of which are a tile's.
function wgmma.tiles(plan, rows, columns, wide)
  local height = has_all and plan.block_q or plan.block_q * wgmma.CLUSTER
  local across = has_all and wgmma.CLUSTER or cdiv(columns, wide) * wgmma.CLUSTER
  if type(rows) == "number" then return cdiv(rows, height) * across end
  return string.format("cdiv(%s, %d) * %d", rows, height, across)
end

-- The step of a recipe that makes so many tiles, each number of which is a sum of so many products: texts.
function wgmma.step(entry, plan, tiles, products)
  return { entry = entry, grid = { tiles, "1", "1" }, threads = 32 * plan.warps, registers = launched(plan), cluster = wgmma.CLUSTER,
           resident = 1, early = true, work = string.format("(128 + %s) * %d", products, plan.block_q * plan.block_kv) }
end

function wgmma.add_constants(d, plan)
  linear.add(d.constants,
    { "BLOCK_M", plan.block_q, "rows of a tile of C" },
    { "BLOCK_N", plan.block_kv, "columns of B's tile" },
    { "GROUPS", groups(plan), "warpgroups that multiply, of 64 rows each" },
    { "STAGES", plan.stages, "tiles of A and of B in flight" },
    { "SLABS", slabs(), "of 64 columns of a warpgroup's rows" },
    { "BIAS_BYTES", bias_bytes(plan), "of a tile's columns" },
    { "CLUSTER", wgmma.CLUSTER, has_all and "blocks that share A, and rows of C" or "blocks that share B" },
    { "BAND", 16 // wgmma.CLUSTER, "tiles of rows of a cluster that are gone through side by side" },
    { "A_BYTES", a_bytes(plan), "of a stage" },
    { "B_BYTES", b_bytes(plan) })
  if wgmma.moves_registers(plan) then
    linear.add(d.constants, { "MOVER_REGISTERS", FEW }, { "REGISTERS", math.min(many(plan), 240) })
  end
end

return wgmma
