-- descale.lua: what makes of numbers of e4m3 the ones they stand for (mathematics.md section 7): a float32 for each sequence and key/value
-- head, or for each block of the sequence's tokens, of k and v, and of q where that is e4m3 too. One that is not given is 1.
-- Returns nil where k and v are no such numbers, else texts:
--
--   inputs        names of the tensors
--   declare, declare_o  declare the floats of a head that `unit` and `o` name, where b and g are known
--   unit          what a product of q and k is multiplied with: the scale, and the descales of a head
--   scale         the size of a unit; not 0, with which the product of a hidden pair, -inf, would be NaN
--   o             what a row of O is multiplied with at its end
--   v             the same where weights are not `rounded` but lie between 8 and 448 by their rows' references; nil: of blocks
--   is_of_blocks  descales are of blocks of tokens, which have nothing of the above but inputs, unit, o and, for families that ask for
--                 each pair's, declare
--   row(q), key(k), value(k)  of blocks: what a product of row q, one of key k, and the weight of value k are multiplied with before
--                 all else; rows and keys that there are not have some number. nil: descales are of heads; row: or q has none
--   rows(q), tile(k0), values(k0)  of blocks, to families whose tiles of keys lie in one block each: declares what the rows of a warp
--                 have, of which q is the first one; declares `unit` of such rows and of the tile from key k0 on; text of what
--                 such a tile's sums are multiplied with when they go to O
--   refusal(block_kv)  why plans with such tiles do not take the spec; nil: they do
--   factor        the power of 2 that a weight is multiplied with before it is rounded, which `o` takes back; nil: it is not rounded
--   rounded(p)    the weight p as the product with V takes it, times `factor`; nil: as it is
local descale = {}

-- Weights are at most 1: times this they are within 448, and what is rounded to 0 is below 2^-18.
-- spot "attention.descale.factor"
local FACTOR, INVERSE = "256.0f", "0.00390625f"

local is_of_blocks = spec.descale_block ~= "0"

-- The descale of a tensor; i: the row or key, of blocks; test: nil, or what must hold besides, or it is 1.
-- spot "attention.descale.load"
local function load(tensor, i, test)
  local block = ""
  if is_of_blocks then
    block = string.format(" + (i64)(imin(%s, %s - 1) / %s) * p.%s_descale_n", i, tensor == "q" and seq.nq or seq.nk, spec.descale_block, tensor)
  end
  return string.format("(%sp.%s_descale ? ldg_f32(p.%s_descale + ((i64)b * p.%s_descale_b + (i64)g * p.%s_descale_h%s)) : 1.0f)",
                       test and test .. " && " or "", tensor, tensor, tensor, tensor, block)
end

local q_has_one, is_rounded = types.q.name == "e4m3", types.p.name == "e4m3"
if types.k.name ~= "e4m3" then return nil end
descale.inputs = { "k_descale?", "v_descale?" }
if q_has_one then table.insert(descale.inputs, 1, "q_descale?") end
descale.is_of_blocks, descale.unit = is_of_blocks, "descaled"
if is_of_blocks then
  descale.declare, descale.declare_o, descale.o = "const float descaled = p.scale;", "", is_rounded and INVERSE or "1.0f"
  descale.row = q_has_one and function(q) return load("q", q) end or nil
  function descale.key(k) return load("k", k) end
  function descale.value(k) return load("v", k) end

  -- A tile is taken where there are no keys, too.
  local function of_tile(tensor, k0) return load(tensor, k0, seq.nk .. " > 0") end
  -- Shuffled, it stays in a register: otherwise wgmma's forward spills beside what it is made of.
  -- spot "attention.descale.rows"
  function descale.rows(q) return string.format("const float of_rows = shfl(ALL_LANES, p.scale%s, 0);", q_has_one and " * " .. load("q", q) or "") end
  -- spot "attention.descale.tile"
  function descale.tile(k0) return string.format("const float descaled = of_rows * %s;", of_tile("k", k0)) end
  function descale.values(k0) return of_tile("v", k0) end
else
  -- spot "attention.descale.declare"
  descale.declare = string.format("const float descaled = p.scale * %s%s;", q_has_one and load("q") .. " * " or "", load("k"))
  -- spot "attention.descale.declare_o"
  descale.v = load("v")
  descale.declare_o = string.format("const float descale_o = %s%s;", is_rounded and INVERSE .. " * " or "", descale.v)
  descale.o = "descale_o"
end
-- spot "attention.descale.scale"
descale.scale = "max_f32(abs_f32(descaled), 1e-36f)"

-- Tiles lie side by side from key 0 on. Rows of a warp are 16 or 32, from a multiple of these on: tiles of e4m3 beside which q has
-- descales are of multiples of 32 keys.
function descale.refusal(block_kv)
  if not is_of_blocks or tonumber(spec.descale_block) % block_kv == 0 then return nil end
  return string.format("a tile of its %d keys may lie in two blocks of %s tokens, each with a descale", block_kv, spec.descale_block)
end
if is_rounded then
  descale.factor = FACTOR
  -- spot "attention.descale.rounded"
  function descale.rounded(p) return string.format("e4m3_to_f32(f32_to_e4m3(%s * %s))", FACTOR, p) end
end
return descale
