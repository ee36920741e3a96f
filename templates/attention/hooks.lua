-- hooks.lua: what a kernel computes, as text for the families: the plug-in contract.
-- Families know no mask, score or normaliser by name: they call these hooks with the names of their
-- own variables and emit what comes back. In every text the kernel's `p` (Params), `b` (batch), `h`
-- (query head) and `g` (its key/value head) are in scope, and so are q and k where the hook is given
-- them: global row and key. All text comes from the trees of the spec's expressions (`formula`).
--
--   pair(names)               the texts of a pair: { head =, row =, test =, score = }; head and row are declarations for
--                             where b and h, and q, are known; names: q, k, s and what formula.emit takes. With
--                             names.backward also slope, d score / ds, and terms: { name =, read =, slope = } for each
--                             read of an input with a gradient
--                             with names.exponent log2: the score times log2 e less names.origin, which is the same for a row; names.reach:
--                             tanh is that of numbers up to TANH_SMALL, and the largest goes to that variable; a sloped
--                             one with names.apart: what does not depend on s is one term
--   score.bends, tanhs        there is a tanh in it, how many; bends_scaled: of the product, scaled, and of nothing else
--   small_reach(names)        of bends_scaled: the test that no number is larger than TANH_SMALL, where `reach` is
--                             the largest |s_raw|
--   score.cap                 nil, or how weights of a capped product are taken: cap.lua, and unit = what the
--                             product is multiplied with before
--   score.linear              true: the score is s itself; families may leave its scale to the normaliser
--   score.additive            true: it is s and terms that do not depend on s
--   score.uneven, chooses     more of it than inputs and a multiple of k differs from key to key: |k - p|; k < n ? s : 0
--   score.sloped              a multiple of s and one of k, the same for a head, and terms of the row: of one key the scores
--                             of two rows differ by the rows alone. In bfloat16, in which rows may share a reference
--   score.above(q, other)     of sloped ones: how much larger row q's are than those of `other`: { head =, row =, value = }
--   score.grad(ds, pair)      dS through the score to the scaled product; calls input.add(name, value)
--                             once for each input that takes a gradient, value being the pair's term
--   large                     score and mask are so long that families do not unroll them: text.rolled
--   long                      unrolled, its score takes registers: ptxas starts many pairs' terms at once
--   mask.tile(q0, q1, k0, k1, h) { never =, always = } of the tile [q0, q1) x [k0, k1), mixed if neither
--   mask.keys(q0, q1)         first and end of the keys that rows [q0, q1) may see
--   mask.first_key(q0, q1)    nil, or that first key, of a kernel that skips no tile too: its tiles lie where those of one
--                             that does are
--   mask.exact                of one row, mask.keys(q, q + 1) are the keys it sees and no others
--   mask.queries(k0, k1)      first and end of the rows that may see keys [k0, k1), whatever the head
--   mask.skips                { keys =, queries = }: tiles inside these ranges may be empty too
--   mask.keys_seen, rows_seen what a row sees of the keys, and a key of the rows, on average: expressions of
--                             the recipe, for the cost model
--   mask.slides               the first key moves on with the rows, the same in all heads: rows next to each other see little of K
--   mask.reads                its test reads memory: only of rows that there are; mask.given: it uses an input
--   mask.edges                its borders that cut through tiles: each costs a row's block half a tile each way
--   norm                      the normaliser: normalizers.lua
--   input.tiled               nil, or the 16-bit input that a family may keep in shared memory, tile by tile:
--                             { name =, elem =, rows = the address of a head's first, stride = between rows,
--                             aligned = a test that both are multiples of 16 bytes, batched, headed = it
--                             differs from batch to batch, from head to head }
--   input.keyed               there is an input that differs from key to key
--   input.by_row              an input that is not `tiled` is read by the row, which has to be one that there is
--   input.lone, by_distance   its read is the only one that does; all do by the distance of key and row alone
--   input.pairwise            and, of those, from pair to pair
--   input.number              there is a tensor of one element, in float32
--   input.staged              the family's: input name -> its value as text, where it has it at hand
--   input.add                 the family's: function(name, value), where it sums an input's gradient
--   input.store(name, q, k, value)  the statement that stores an element of the gradient
--   input.place(x, q, k)      the address of that element; input.element(x) its type; input.aligned(x) a test that rows
--                             of keys begin at multiples of 16 bytes
--   input.names, input.grads  the tensors in order; those that take a gradient, in order: { name =, output =,
--                             extents = "bhqk" with 1 for each axis over which it is summed, or nil where it is
--                             indexed in another way, kind = "dense" (q and k), "rows" (q), "keys" (k), "scalar" or
--                             "indexed", region = and count = of its sums in float32, for families that need them }
--   input.sum(x, term, q, k)  the address of the pair's element among the sums of gradient x
--   input.distant(x)          its indices depend on q and k by their distance alone
--   input.affine(x)           nil, or how its one index follows from the distance of key and row: { factor =, index =
--                             the text of the index at distance 0, element = of the pass's own element }
--   input.count(x)            elements of the gradient, in the kernel
--   input.split(x, at)        the declarations of the indices i1, i2, ... of element `at`
--   input.store_split(x, value)  the statement that stores the element of those indices
--   input.finish(x, at)       the statements that store element `at` of the sums as the gradient
--   input.blocks(x, size)     of an affine one: blocks that own `size` elements of its affine axis each, an
--                             expression of the recipe
--   input.band(x, size)       the declarations of the first of a block's elements, `first`, and of its other
--                             indices i1, i2, ...; input.length(x) is how many there are on that axis
-- Tests are C expressions, "1" and "0" when known; ranges may leave [0, nq) and [0, nk): families
-- clamp them.
local hooks = {}

-- The key that row q sits at when both ends align.
local function place(q) return q .. " + p.nk - p.nq" end

local always = { b = "b", h = "h", hk = "g", nq = "p.nq", nk = "p.nk", nh = "p.h" }

local function emit(nodes, names)
  for name, text in pairs(always) do names[name] = names[name] or text end
  if names.q then names.p = place(names.q) end
  return formula.emit(nodes, names)
end

-- The text of one node, nothing taken out of it.
local function text_of(node, names) return emit({ node }, names).values[1] end

-- Inputs ------------------------------------------------------------------------------------------
local input = { names = {}, grads = {}, staged = {} }
hooks.input = input
local declared = {} -- by name

local axes = { b = 1, h = 2, q = 3, k = 4 }

-- "bhqk" with 1 for each axis that the read of an input lacks, nil where it is indexed otherwise.
local function extents_of(x)
  if #x.reads ~= 1 then return nil end
  local found = { "1", "1", "1", "1" }
  for _, axis in ipairs(x.reads[1].axis) do
    if axis == "other" or found[axes[axis] or 0] == axis then return nil end
    if axis ~= "1" then found[axes[axis]] = axis end
  end
  return table.concat(found)
end

for i, x in ipairs(formula.inputs) do
  local prefix = x.name == "bias" and "" or "in_"
  declared[x.name] = { at = i, input = x, ident = prefix .. x.name, extents = extents_of(x) }
  if x.tensor then input.names[#input.names + 1] = prefix .. x.name end
  if x.tensor and declared[x.name].extents == "1111" and x.elem == "f32" then input.number = true end
  if x.grad then
    local extents, counts = declared[x.name].extents, {}
    for _, extent in ipairs(x.extents) do
      local lengths = { b = "b", h = "h", hk = "hk", q = "nq", k = "nk", ["1"] = "1" }
      counts[#counts + 1] = lengths[extent] or "max(0, " .. extent .. ")"
    end
    local kinds = { qk = "dense", ["q1"] = "rows", ["1k"] = "keys", ["11"] = "scalar" }
    input.grads[#input.grads + 1] = {
      lengths = counts, name = x.name, output = "d" .. prefix .. x.name, extents = extents,
      kind = extents and kinds[extents:sub(3)] or "indexed", region = "sums" .. i, count = table.concat(counts, " * "),
    }
  end
  for _, read in ipairs(x.reads) do
    local keyed = formula.uses(read.node, "k")
    if keyed then
      input.lone, input.by_distance = not input.keyed, input.by_distance ~= false and read.diagonal
    end
    input.keyed = input.keyed or keyed
    input.pairwise = input.pairwise or keyed and (formula.uses(read.node, "q") or formula.uses(read.node, "p"))
  end
end

-- The type of a gradient's elements.
local function grad_elem(name) return name == "bias" and spec.grad_elem or declared[name].input.elem end

-- The statement that stores an element of an input's gradient by the texts of its indices.
local function store(name, index, value)
  local to, elem = formula.address(declared[name].at, true, index), grad_elem(name)
  if elem == "f32" then return string.format("stg_f32(%s, %s);", to, value) end
  return string.format("stg_u16(%s, f32_to_%s(%s));", to, elem, value)
end

-- The texts of the indices of the pair's element of a gradient that is no indexed one.
local function index_of(name, q, k)
  local at = { b = "b", h = "h", q = q, k = k, ["1"] = "0" }
  local index = {}
  for i, axis in ipairs(declared[name].input.reads[1].axis) do index[i] = at[axis] end
  return index
end

function input.store(name, q, k, value) return store(name, index_of(name, q, k), value) end

function input.place(x, q, k) return formula.address(declared[x.name].at, true, index_of(x.name, q, k)) end

function input.element(x) return grad_elem(x.name) end

-- The stride of an input or a gradient along its i-th axis.
local function stride_of(ident, i)
  return string.format("p.%s_%s", ident, ident:match("^d?bias$") and ("bhqk"):sub(i, i) or i - 1)
end

-- The test that rows of keys begin at multiples of 16 bytes: of an input or a gradient of 16-bit numbers.
local function aligned_rows(ident, axes)
  local strides = {}
  for i, axis in ipairs(axes) do
    if axis ~= "1" and axis ~= "k" then strides[#strides + 1] = stride_of(ident, i) end
  end
  return string.format("(((u64)p.%s | 2 * (u64)(%s)) & 15) == 0", ident, table.concat(strides, " | "))
end

function input.aligned(x)
  local axes = declared[x.name].input.reads[1].axis
  return axes[#axes] == "k" and aligned_rows("d" .. declared[x.name].ident, axes) or "0"
end

-- An axis's length in the kernel.
local function length_of(extent)
  local lengths = { b = "p.b", h = "p.h", hk = "p.hk", q = "p.nq", k = "p.nk", ["1"] = "1" }
  return lengths[extent] or "(" .. extent:gsub("%f[%w]n[qk]%f[%W]", "p.%0"):gsub("%f[%w]m[ai][nx]%(", "i%0") .. ")"
end

function input.sum(x, term, q, k)
  local own = declared[x.name].input
  local texts = emit(own.reads[term.read].index, { q = q, k = k }).values
  local at = "0"
  for i, extent in ipairs(own.extents) do
    local index = extent == "1" and "0" or "(" .. texts[i] .. ")"
    at = at == "0" and "(i64)" .. index or string.format("(%s) * %s + %s", at, length_of(extent), index)
  end
  return string.format("p.%s + (%s)", x.region, at)
end

function input.distant(x)
  for _, read in ipairs(declared[x.name].input.reads) do
    if not read.diagonal then return false end
  end
  return true
end

-- Elements of the gradient.
function input.count(x)
  local lengths = {}
  for i, extent in ipairs(declared[x.name].input.extents) do lengths[i] = length_of(extent) end
  return #lengths > 0 and table.concat(lengths, " * ") or "1"
end

function input.split(x, at)
  local lines, extents = {}, declared[x.name].input.extents
  for i = #extents, 1, -1 do
    if extents[i] ~= "1" then
      if #lines == 0 then lines[1] = "i64 rest = " .. at .. ";" end
      lines[#lines + 1] = string.format("const i64 i%d = rest %% %s;", i, length_of(extents[i]))
      lines[#lines + 1] = i > 1 and string.format("rest /= %s;", length_of(extents[i])) or nil
    end
  end
  return table.concat(lines, "\n")
end

-- The statement that stores the element of those indices.
function input.store_split(x, value)
  local index = {}
  for i, extent in ipairs(declared[x.name].input.extents) do index[i] = extent == "1" and "0" or "i" .. i end
  return store(x.name, index, value)
end

function input.finish(x, at)
  return input.split(x, at) .. "\n" .. input.store_split(x, string.format("ldg_f32(p.%s + %s)", x.region, at))
end

function input.affine(x)
  local reads = declared[x.name].input.reads
  local read = reads[1]
  if #reads ~= 1 or not read.affine then return nil end
  local axes = {} -- which of its indices are those of b and h
  for i, axis in ipairs(read.axis) do axes[axis] = "i" .. i end
  return { factor = read.affine, axis = read.affine_axis, index = text_of(read.index[read.affine_axis], { q = "0", k = "0" }),
           element = "i" .. read.affine_axis, b = axes.b, h = axes.h }
end

function input.length(x) return length_of(declared[x.name].input.extents[input.affine(x).axis]) end

function input.blocks(x, size)
  local factors = table.move(x.lengths, 1, #x.lengths, 1, {})
  local axis = input.affine(x).axis
  factors[axis] = string.format("cdiv(%s, %d)", factors[axis], size)
  return table.concat(factors, " * ")
end

function input.band(x, size)
  local bands, extents = string.format("cdiv(%s, %s)", input.length(x), size), declared[x.name].input.extents
  local lines, place = { string.format("const int first = (int)blockIdx.x %% %s * %s;", bands, size) }, "(int)blockIdx.x / " .. bands
  for i = #extents, 1, -1 do
    if i ~= input.affine(x).axis and extents[i] ~= "1" then
      lines[#lines + 1] = string.format("const int i%d = %s %% %s;", i, place, length_of(extents[i]))
      place = place .. " / " .. length_of(extents[i])
    end
  end
  return table.concat(lines, "\n")
end

-- The score ----------------------------------------------------------------------------------------
local score = { linear = formula.linear, additive = formula.text(formula.slope) == "1.0" }
hooks.score = score

-- What is left to do for each key when the row's part is known, without what is read.
do
  local text = emit({ formula.score }, { q = "q", k = "KEY", k_base = "BASE", k_offset = "OFFSET", s = "s", hoist = true }).values[1]
  text = text:gsub("ld[gs]_%w+%b()", "")
  score.uneven = text:find("KEY") ~= nil or select(2, text:gsub("OFFSET", "")) > 1
  score.chooses = score.uneven and text:find("?", 1, true) ~= nil
end

-- The terms of a sloped score in units of log 2.
local function terms_of(text, offset, s)
  local names = { OFFSET = offset:gsub("%p", "%%%0"), S = s:gsub("%p", "%%%0") }
  return text:match((("^([%w_.+-]+ %* %(float%)%(OFFSET%)) %+ %((of_head%d+ %* S) %+ (of_row%d+)%)$"):gsub("%u+", names)))
end
do
  local texts = emit({ formula.score }, { log2 = 1, q = "q", k = "KEY", k_base = "BASE", k_offset = "OFFSET", s_unit = "p.scale", s_raw = "s", hoist = true })
  local of_key = terms_of(texts.values[1], "OFFSET", "s")
  score.sloped = spec.elem == "bf16" and of_key ~= nil and not of_key:find("of_row") and not texts.row:find("ldg_")
end

-- Is an input of what others' gradients multiply dS by?
local function in_slopes(ident)
  for _, x in ipairs(formula.inputs) do
    for _, read in ipairs(x.grad and x.reads or {}) do
      if text_of(read.slope, { q = "q", k = "k", s = "s" }):find("p." .. ident .. "[^%w]") then return true end
    end
  end
  return false
end

-- A dense 16-bit input of [..., q, k] that an additive score reads once.
local function find_tiled()
  for _, input in ipairs(formula.inputs) do
    local x = declared[input.name]
    local extents, ident = x.extents, x.ident
    local whole = extents and extents:sub(3) == "qk" and table.concat(x.input.reads[1].axis):sub(-2) == "qk"
    if whole and (input.elem == "bf16" or input.elem == "f16") and not in_slopes(ident) then
      local terms, axes = {}, x.input.reads[1].axis
      for i, axis in ipairs(axes) do
        if axis == "b" or axis == "h" then terms[#terms + 1] = string.format("%s * %s", axis, stride_of(ident, i)) end
        if axis == "q" then x.stride = stride_of(ident, i) end
      end
      return {
        name = x.input.name, elem = x.input.elem,
        rows = string.format("p.%s + (%s)", ident, #terms > 0 and table.concat(terms, " + ") or "0"),
        stride = x.stride, aligned = aligned_rows(ident, axes),
        batched = extents:find("b") ~= nil, headed = extents:find("h") ~= nil,
      }
    end
  end
end

-- Unrolled over a thread's pairs, 64 terms compile for 20 s, and spill (NVRTC 13.0, mma, d 64): a text
-- this long is evaluated in a loop, which costs a way through memory and the overlap of its reads. T5's
-- buckets have 253 characters.
local of_pair = emit({ formula.mask, formula.score }, { q = "q", k = "k", s = "s", hoist = true }).values
hooks.large = #of_pair[1] + #of_pair[2] > 300
hooks.long = not hooks.large and #of_pair[2] > 100 -- 4 terms of tanh
input.tiled = score.additive and not hooks.large and find_tiled() or nil

for name, x in pairs(declared) do
  for _, read in ipairs(name ~= (input.tiled or {}).name and x.input.reads or {}) do
    input.by_row = input.by_row or formula.uses(read.node, "q") or formula.uses(read.node, "p")
  end
end

function hooks.pair(names)
  local nodes, terms = { formula.mask, formula.score, names.backward and formula.slope or 0, names.exponent and formula.score or 0 }, {}
  names.log2 = names.exponent and #nodes or nil
  for _, x in ipairs(names.backward and formula.inputs or {}) do
    for at, read in ipairs(x.grad and x.reads or {}) do
      nodes[#nodes + 1] = read.slope
      terms[#terms + 1] = { name = x.name, read = at }
    end
  end
  names.staged = input.staged
  names.s = names.s or names.s_unit and names.s_unit .. " * " .. names.s_raw
  local texts = emit(nodes, names)
  for i, term in ipairs(terms) do term.slope = texts.values[4 + i] end
  if names.apart and score.sloped then
    local of_key, of_s, of_row = terms_of(texts.values[4], names.k_offset, names.s_raw)
    texts.values[4] = string.format("%s + (%s + %s)", of_s, of_key, of_row)
  end
  return { head = texts.head, row = texts.row, test = texts.values[1], score = texts.values[2], slope = texts.values[3], log2 = names.exponent and texts.values[4],
           terms = terms }
end

-- What tanh is taken of in the score.
local tanhs = formula.tanhs(formula.score)
score.bends, score.tanhs = #tanhs > 0, #tanhs

-- Where tanh is taken of the scaled product alone: a test of `reach`, the largest |s_raw|.
function hooks.small_reach(names)
  local texts, tests = emit(tanhs, names), {}
  for i, value in ipairs(texts.values) do
    local unit = value:match("^(of_head%d+) %* " .. names.s_raw:gsub("%W", "%%%0") .. "$")
    unit = unit and texts.head:match("const float " .. unit .. " = ([^\n]*);")
    if not unit then return nil end
    tests[i] = string.format("reach * abs_f32(%s) <= TANH_SMALL", unit)
  end
  return table.concat(tests, " && ")
end

score.bends_scaled = score.bends and hooks.small_reach({ q = "q", s_unit = "p.scale", s_raw = "s", hoist = true }) ~= nil

-- A cap of the scaled product and nothing else: in bfloat16, whose exponents need no range, under a mask that
-- shows a row one range of keys (of others the tests are made twice, and 8 to 136 bytes spill, NVRTC 13.0).
local function find_cap()
  if score.tanhs ~= 1 or not score.bends_scaled or spec.elem ~= "bf16" or not formula.keys.exact then return nil end
  local texts = emit({ formula.score }, { q = "q", s_unit = "p.scale", s_raw = "s", hoist = true })
  local unit, factor = texts.values[1]:match("^tanh_f32%((of_head%d+) %* s%) %* ([%d.e+-]+)f$")
  local cap = unit and run("attention/cap.lua")(tonumber(factor))
  if cap then cap.unit = texts.head:match("const float " .. unit .. " = ([^\n]*);") end
  return cap
end
score.cap = find_cap()

-- x times a factor that may be 1.
local function times(x, factor) return factor == "1.0f" and x or string.format("%s * (%s)", x, factor) end

function score.above(q, other)
  local function at(row) return emit({ formula.score }, { q = row, k = "(" .. place(other) .. ")", s = "0.0f", hoist = true }) end
  local own, its = at(q), at(other)
  local function renamed(text) return (text:gsub("of_row", "of_other")) end
  return { head = own.head, row = own.row .. "\n" .. renamed(its.row), value = string.format("%s - (%s)", own.values[1], renamed(its.values[1])) }
end

function score.grad(ds, pair)
  for _, term in ipairs(pair.terms) do input.add(term.name, times(ds, term.slope), term) end
  return times(ds, pair.slope)
end

-- Masks --------------------------------------------------------------------------------------------
local mask = { exact = formula.keys.exact, skips = { keys = not formula.keys.exact, queries = not formula.queries.exact }, edges = 0 }
hooks.mask = mask
local mask_text = text_of(formula.mask, { q = "q" })
mask.reads, mask.given = mask_text:find("ldg_", 1, true) ~= nil, mask_text:find("p.in_", 1, true) ~= nil
if text_of(formula.never, { wide = true }) == "0" then mask.skips = {} end

local begin = formula.first_key
mask.slides = begin ~= nil and not (formula.uses(begin, "b") or formula.uses(begin, "h") or formula.uses(begin, "hk"))

function mask.tile(q0, q1, k0, k1, h)
  local texts = emit({ formula.never, formula.always }, { q0 = q0, q1 = q1, k0 = k0, k1 = k1, h = h, wide = true })
  return { never = texts.values[1], always = texts.values[2] }
end

-- A bound as an index: one of 64 bits is cut to what lengths can be.
local function bound(node, names, default)
  if not node then return default end
  names.wide = true
  local text = text_of(node, names)
  return text:find("(i64)", 1, true) and "clamp_index(" .. text .. ")" or text
end

function mask.keys(q0, q1)
  return bound(formula.keys.first, { q0 = q0, q1 = q1 }, "0"), bound(formula.keys.last, { q0 = q0, q1 = q1 }, "p.nk")
end

function mask.first_key(q0, q1) return begin and bound(begin, { q0 = q0, q1 = q1 }) end

function mask.queries(k0, k1)
  local function headless(node) return node and not formula.uses(node, "h") and node or nil end
  local range = formula.queries
  if headless(range.first) ~= range.first or headless(range.last) ~= range.last then mask.skips.queries = true end
  return bound(headless(range.first), { k0 = k0, k1 = k1 }, "0"), bound(headless(range.last), { k0 = k0, k1 = k1 }, "p.nq")
end

-- Entries of an expression's code, which is at most 64 long (FG_EXPR_MAX); families put up to 20 around it.
local LONGEST = 44
local function entries(text)
  local _, words = text:gsub("%w+", "")
  local _, signs = text:gsub("[%+%-%*/]", "")
  return words + signs
end

-- The length of the range of a row or key in the middle, where it is a short expression of lengths and
-- constants; else all of the other side.
local function seen(range, names, length)
  local function side(node)
    local text = node and formula.text(node)
    if not text then return nil end
    for name, value in pairs(names) do text = text:gsub("%f[%w]" .. name .. "%f[%W]", value) end
    return not text:find("[^%w%s%+%-%*/%(%),]") and not text:find("^%-") and not text:find("[%(,] ?%-") and not text:gsub("%f[%a]%w+", { nq = "", nk = "", min = "", max = "" }):find("%a") and text
  end
  local first, last = side(range.first), side(range.last)
  local text = length
  if first and last then
    text = string.format("max(min(%s, %s) - max(%s, 0), 1)", last, length, first)
  elseif last then
    text = string.format("max(min(%s, %s), 1)", last, length)
  elseif first then
    text = string.format("max(%s - max(%s, 0), 1)", length, first)
  end
  return entries(text) <= LONGEST and text or length
end
mask.keys_seen = seen(formula.keys, { q0 = "nq / 2", q1 = "(nq / 2 + 1)" }, "nk")
mask.rows_seen = seen(formula.queries, { k0 = "nk / 2", k1 = "(nk / 2 + 1)" }, "nq")
for _, side in ipairs({ "first", "last" }) do
  if formula.keys[side] then mask.edges = mask.edges + 1 end
end

hooks.norm = run("attention/normalizers.lua")[spec.normalizer]
return hooks
