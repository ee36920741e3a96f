-- hooks.lua: what a kernel computes, as text for the families; the plug-in contract.
-- Families name no mask, score or normaliser: they call these hooks with the names of their own
-- variables and emit what comes back. In every text the kernel's `p` (Params), `b` (batch) and `h`
-- (query head) are in scope, and so are q and k where the hook is given them: global row and key.
--
--   score.apply(s, q, k)          the score after all terms; s is the scaled product
--   score.grad(ds, s, q, k)       dS through the score to s, and { [input] = its gradient's term }
--   mask.test(q, k)               is the pair visible?
--   mask.tile(q0, q1, k0, k1)     { never =, always = } of the tile [q0, q1) x [k0, k1)
--   mask.keys(q0, q1)             first and end of the keys that rows [q0, q1) may see
--   mask.queries(k0, k1)          first and end of the rows that may see keys [k0, k1)
--   norm                          the normaliser: normalizers.lua
--   input[name]                   an input tensor: load(q, k), extents ("b", "h", "q", "k" or "1"
--                                 each), grad (the output that takes its gradient, or nil)
-- Tests are C expressions, "1" and "0" when known; ranges may leave [0, nq) and [0, nk): families
-- clamp them.
local hooks = {}

local function load_elem(elem, pointer)
  if elem == "f32" then return "ldg_f32(" .. pointer .. ")" end
  return elem .. "_to_f32(ldg_u16(" .. pointer .. "))"
end

-- The element of a [b|1, h|1, q|1, k|1] tensor that a score is made from: the unit axis has no
-- stride, a broadcast one no term.
local function element(name, extents, q, k)
  local at = { b = "b", h = "h", q = q }
  local terms = {}
  for axis in extents:gmatch("[bhq]") do
    terms[#terms + 1] = string.format("%s * p.%s_%s", at[axis], name, axis)
  end
  if extents:find("k") then terms[#terms + 1] = k end
  return string.format("p.%s + (%s)", name, #terms > 0 and table.concat(terms, " + ") or "0")
end

-- Inputs ------------------------------------------------------------------------------------------
hooks.input = {}
if spec.bias ~= "false" then
  local extents = ""
  for axis in ("bhqk"):gmatch(".") do
    extents = extents .. (spec.bias_dims:find(axis) and axis or "1")
  end
  hooks.input.bias = {
    extents = extents,
    elem = spec.bias_elem,
    grad = spec.bias == "grad" and "dbias" or nil,
    grad_elem = spec.grad_elem,
    load = function(q, k) return load_elem(spec.bias_elem, element("bias", extents, q, k)) end,
    grad_at = function(q, k) return element("dbias", extents, q, k) end,
  }
end

-- The score ----------------------------------------------------------------------------------------
hooks.score = {}

function hooks.score.apply(s, q, k)
  local bias = hooks.input.bias
  return bias and string.format("%s + %s", s, bias.load(q, k)) or s
end

function hooks.score.grad(ds, s, q, k)
  local bias = hooks.input.bias
  return ds, { bias = bias and bias.grad and ds or nil }
end

-- Masks --------------------------------------------------------------------------------------------
-- place(q) is the key that row q sits at when both ends align.
local function place(q) return string.format("%s + p.nk - p.nq", q) end

local masks = {
  full = {
    test = function(q, k) return "1" end,
    tile = function(q0, q1, k0, k1) return { never = "0", always = "1" } end,
    keys = function(q0, q1) return "0", "p.nk" end,
    queries = function(k0, k1) return "0", "p.nq" end,
  },
  causal = {
    test = function(q, k) return string.format("%s <= %s", k, place(q)) end,
    tile = function(q0, q1, k0, k1)
      return { never = string.format("%s >= %s", k0, place(q1)),
               always = string.format("%s <= %s + 1", k1, place(q0)) }
    end,
    keys = function(q0, q1) return "0", place(q1) end,
    queries = function(k0, k1) return string.format("%s - p.nk + p.nq", k0), "p.nq" end,
  },
}
hooks.mask = masks[spec.mask]

hooks.norm = run("attention/normalizers.lua")[spec.normalizer]
return hooks
