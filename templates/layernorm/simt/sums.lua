-- sums.lua: what the backward passes of layer and RMS norm add up over rows, and what of a row a thread has room for.
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

-- Registers of a thread besides those of its chunks; of a chunk: its sums, the words of z, dout and dz, those of the next row.
local OTHERS = 66
function sums.registers(chunks, is_held, is_ahead)
  local raw = 2 * types.x.bytes
  return OTHERS + chunks * (8 * #sums.names + (is_held and 3 * raw or 0) + (is_ahead and 2 * raw or 0))
end

local function fits(plan, chunks, ...) return sums.registers(chunks, ...) <= math.min(255, 65536 // (32 * plan.warps)) end

-- Blocks that share the columns of a row: each reads all of it, and has the sums of some. One, where a thread has room for those
-- of all its chunks; nil: there is no room.
function sums.parts(plan)
  local all = norm.chunks_of(plan)
  for parts = 1, 2 do
    if fits(plan, cdiv(all, parts)) then return parts end
  end
end

function sums.has_parts(plan) return sums.parts(plan) > 1 end

-- Chunks of a thread that it has the sums of.
function sums.chunks(plan) return cdiv(norm.chunks_of(plan), sums.parts(plan)) end

-- Are z and dout of a row held until its own sums are known, or read again? Are those of the next row under way meanwhile?
function sums.is_held(plan) return not sums.has_parts(plan) and fits(plan, sums.chunks(plan), true, false) end
function sums.is_ahead(plan) return not sums.has_parts(plan) and fits(plan, sums.chunks(plan), true, true) end

return sums
