-- norm.lua: what the passes of layer and RMS norm share (mathematics.md section 5): which tensors a spec has, and which plans.
local shared_rows = run("tile/shared_rows.lua")
local norm = {
  is_rms = spec.norm == "rms",
  has_bias = spec.bias ~= "false",
  has_residual = spec.residual == "true",
  chunks = spec.width // 8,
}

-- Is z another tensor than x?
norm.has_z = norm.has_bias or norm.has_residual

local MOST = 16384 -- columns, of which a block holds each in a register

function norm.applies(spec, arch)
  if spec.width % 8 ~= 0 then return false, string.format("width=%d is no multiple of 8", spec.width) end
  return spec.width <= MOST, string.format("width=%d is more than %d, which a block can hold", spec.width, MOST)
end

-- Has a thread room for gamma and beta of all its chunks beside the columns?
function norm.has_room(plan) return norm.chunks_of(plan) * types.x.bytes <= 8 end

-- Chunks of a thread; and whether all threads have as many.
function norm.chunks_of(plan) return cdiv(norm.chunks, shared_rows.group(plan)) end
function norm.is_even(plan) return norm.chunks % shared_rows.group(plan) == 0 end

-- Lanes that have a warp's numbers each, of all warps of a row: a power of two.
function norm.lanes_of_warps(plan)
  local warps, lanes = cdiv(shared_rows.group(plan), 32), 1
  while lanes < warps do lanes = 2 * lanes end
  return lanes
end

-- Do pairs of threads, of lanes and of warps have as many columns as each other?
function norm.has_equal_parts(plan)
  return norm.is_even(plan) and norm.lanes_of_warps(plan) == cdiv(shared_rows.group(plan), 32)
end

-- "a | b | 2 * c": the bits of addresses and strides that are not 0 modulo 16 where the tensors of these names are not
-- aligned. Strides are told by "x.n", of rows.
function norm.bits(names)
  local addresses, strides = {}, {}
  for _, name in ipairs(names) do
    addresses[#addresses + 1] = "(u64)p." .. name
    for _, vector in ipairs({ "bias", "gamma", "beta" }) do
      if name == vector then goto next end
    end
    strides[#strides + 1] = "(u64)p." .. name .. "_n"
    ::next::
  end
  return string.format("%s | %d * (%s)", table.concat(addresses, " | "), types.x.bytes, table.concat(strides, " | "))
end

return norm
