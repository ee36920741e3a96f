-- hooks.lua: what a kernel computes, as text for the families: the plug-in contract.
-- Families know no mask, score or normaliser by name: they call these hooks with the names of their
-- own variables and emit what comes back. In every text the kernel's `p` (Params), `b` (batch) and
-- `h` (query head) are in scope, and so are q and k where the hook is given them: global row and key.
--
--   score.apply(s, q, k)      the score after all terms; s is the scaled product
--   score.linear              true: the score is s itself; families may leave its scale to the normaliser
--   score.grad(ds, s, q, k)   dS through the score to the scaled product; calls input.add(name, value)
--                             once for each input that takes a gradient, value being the pair's term
--   mask.test(q, k)           is the pair visible?
--   mask.tile(q0, q1, k0, k1) { never =, always = } of the tile [q0, q1) x [k0, k1), mixed if neither
--   mask.keys(q0, q1)         first and end of the keys that rows [q0, q1) may see
--   mask.queries(k0, k1)      first and end of the rows that may see keys [k0, k1)
--   mask.keys_seen, rows_seen what a row sees of the keys, and a key of the rows, on average: expressions of
--                             the recipe, for the cost model
--   mask.edges                its borders that cut through tiles: each costs a row's block half a tile each way
--   norm                      the normaliser: normalizers.lua
--   input.load(name, q, k)    an input's value for the pair
--   input.tiled               nil, or the 16-bit input that a family may keep in shared memory, tile by tile:
--                             { name =, rows = the address of a head's first, stride = between rows,
--                             aligned = a test that both are multiples of 16 bytes, batched = it differs
--                             from batch to batch }
--   input.pairwise            there is an input that differs from pair to pair
--   input.staged              the family's: input name -> its value as text, where it has it at hand
--   input.add                 the family's: function(name, value), where it sums an input's gradient
--   input.store(name, q, k, value)  the statement that stores an element of the gradient
--   input.names, input.grads  the inputs in order; those that take a gradient: name -> { output =,
--                             extents = "bhqk" with 1 for each axis over which it is summed }
-- Tests are C expressions, "1" and "0" when known; ranges may leave [0, nq) and [0, nk): families
-- clamp them.
local hooks = {}

-- Inputs ------------------------------------------------------------------------------------------
local input = { names = {}, grads = {} }
hooks.input = input

-- The address of an element of a [b|1, h|1, q|1, k|1] tensor: the last axis has stride 1, a
-- broadcast one no term.
local function element(name, extents, q, k)
  local at = { b = "b", h = "h", q = q }
  local terms = {}
  for axis in extents:gmatch("[bhq]") do
    terms[#terms + 1] = string.format("%s * p.%s_%s", at[axis], name, axis)
  end
  if extents:find("k") then terms[#terms + 1] = k end
  return string.format("p.%s + (%s)", name, #terms > 0 and table.concat(terms, " + ") or "0")
end

local bias_extents = ("bhqk"):gsub(".", function(axis) return spec.bias_dims:find(axis) and axis or "1" end)
if spec.bias ~= "false" then input.names[1] = "bias" end
if spec.bias == "grad" then input.grads.bias = { output = "dbias", extents = bias_extents } end

input.staged = {}

-- The part of the address of an element that its axes among `axes` make up.
local function offset(name, extents, axes)
  local terms = {}
  for axis in extents:gmatch("[" .. axes .. "]") do terms[#terms + 1] = string.format("%s * p.%s_%s", axis, name, axis) end
  return #terms > 0 and table.concat(terms, " + ") or "0"
end

if spec.bias ~= "false" and spec.bias_elem ~= "f32" and bias_extents:sub(3) == "qk" then
  local strides = bias_extents:gsub("[k1]", ""):gsub(".", " | p.bias_%0")
  input.tiled = {
    name = "bias",
    rows = "p.bias + (" .. offset("bias", bias_extents, "bh") .. ")",
    stride = "p.bias_q",
    aligned = string.format("(((u64)p.bias | 2 * (u64)(%s)) & 15) == 0", strides:sub(4)),
    batched = bias_extents:find("b") ~= nil,
  }
end
input.pairwise = spec.bias ~= "false" and bias_extents:sub(3) == "qk"

function input.load(name, q, k)
  if input.staged[name] then return input.staged[name] end
  local at = element(name, bias_extents, q, k)
  if spec.bias_elem == "f32" then return "ldg_f32(" .. at .. ")" end
  return string.format("%s_to_f32(ldg_u16(%s))", spec.bias_elem, at)
end

function input.store(name, q, k, value)
  local at = element(input.grads[name].output, bias_extents, q, k)
  if spec.grad_elem == "f32" then return string.format("stg_f32(%s, %s);", at, value) end
  return string.format("stg_u16(%s, f32_to_%s(%s));", at, spec.grad_elem, value)
end

-- The score ----------------------------------------------------------------------------------------
hooks.score = { linear = spec.bias == "false" }

function hooks.score.apply(s, q, k)
  if spec.bias == "false" then return s end
  return string.format("%s + %s", s, input.load("bias", q, k))
end

function hooks.score.grad(ds, s, q, k)
  if spec.bias == "grad" then input.add("bias", ds) end
  return ds
end

-- Masks --------------------------------------------------------------------------------------------
-- The key that row q sits at when both ends align.
local function place(q) return string.format("%s + p.nk - p.nq", q) end

local masks = {
  full = {
    test = function(q, k) return "1" end,
    tile = function(q0, q1, k0, k1) return { never = "0", always = "1" } end,
    keys = function(q0, q1) return "0", "p.nk" end,
    queries = function(k0, k1) return "0", "p.nq" end,
    keys_seen = "nk", rows_seen = "nq", edges = 0,
  },
  causal = {
    test = function(q, k) return string.format("%s <= %s", k, place(q)) end,
    tile = function(q0, q1, k0, k1)
      return { never = string.format("%s >= %s", k0, place(q1)),
               always = string.format("%s <= %s + 1", k1, place(q0)) }
    end,
    keys = function(q0, q1) return "0", place(q1) end,
    queries = function(k0, k1) return string.format("%s - p.nk + p.nq", k0), "p.nq" end,
    keys_seen = "max(nk - nq / 2, nk / 2)", rows_seen = "max(nq - nk / 2, nq / 2)", edges = 1,
  },
}
hooks.mask = masks[spec.mask]

hooks.norm = run("attention/normalizers.lua")[spec.normalizer]
return hooks
