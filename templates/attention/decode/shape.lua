-- shape.lua: how a plan of decode_forward divides rows and keys over the warps of a block. A team of warps has all rows, 16 or 8
-- each, and keys of its own, which it brings to shared memory by itself.
local tiles = run("tile/tiles.lua")
local shape = {}

-- Are K and V numbers of e4m3, which become those of Q's type on their way from shared memory?
shape.is_widened = types.k.is_byte and true or false

-- Bytes of a key, and of its value, in memory.
function shape.key_bytes(spec) return spec.d * types.k.bytes + spec.dv * types.v.bytes end

function shape.is_wide(spec) return spec.d + spec.dv > 320 end

-- Rows of a warp: 8 leave room for the registers of a wide head.
function shape.warp_rows(spec, plan) return math.min(plan.block_q, shape.is_wide(spec) and 8 or 16) end

function shape.has_8_rows(spec, plan) return shape.warp_rows(spec, plan) == 8 end

-- Warps of a team; is it one alone? Teams of a block.
function shape.members(spec, plan) return plan.block_q // shape.warp_rows(spec, plan) end
function shape.is_warp(spec, plan) return shape.members(spec, plan) == 1 end
function shape.teams(spec, plan) return plan.warps // shape.members(spec, plan) end

-- Registers of Q, two columns each: 4 for each step of 16 columns, or for two of them where a warp has 8 rows (halves.cut).
function shape.q_words(spec, plan)
  local steps = tiles.chunks(spec.d, types.k) // types.k.bytes
  return 4 * (shape.has_8_rows(spec, plan) and cdiv(steps, 2) or steps)
end

-- Tiles of 8 columns of O.
function shape.column_tiles(spec) return tiles.chunks_of_sums(spec.dv, types.v) end

-- Floats of a row of O in a part, and of one in shared memory, where rows that lanes write together lie in different banks.
function shape.part_columns(spec) return 8 * shape.column_tiles(spec) end
function shape.part_pitch(spec) return shape.part_columns(spec) + 4 end

return shape
