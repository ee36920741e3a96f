-- inputs.lua: what mask and score read besides q and k, and its gradients, as text for the families: hooks.input.
--
--   input.tiled               nil, or the 16-bit input that a family may keep in shared memory, tile by tile:
--                             { name =, elem =, rows = the address of a head's first, stride = between rows,
--                             aligned = a test that both are multiples of 16 bytes, batched, headed = it
--                             differs from batch to batch, from head to head, is_in_mask = the mask reads it too }
--   input.differs_by_key      there is an input that differs from key to key
--   input.is_read_by_row      an input that is not `tiled` is read by the row, which has to be one that there is
--   input.one_differs_by_key  its read is the only one that does
--   input.differs_by_distance all that do, do by the distance of key and row alone
--   input.differs_by_pair     and, of those, from pair to pair
--   input.has_f32_number      there is a tensor of one element, in float32
--   input.staged              the family's: input name -> its value as text, where it has it at hand
--   input.add                 the family's: function(name, value), where it sums an input's gradient
--   input.store(name, q, k, value)  the statement that stores an element of the gradient
--   input.place(x, q, k)      the address of that element; input.element(x) its type; input.aligned(x) a test that rows
--                             of keys begin at multiples of 16 bytes
--   input.names, input.grads  the tensors in order; those that take a gradient, in order: { name =, output =,
--                             extents = "bhqk" with 1 for each axis over which it is summed, or nil where it is
--                             indexed in another way, batched, headed = its extents have b, h, kind = "dense" (q and
--                             k), "rows" (q), "keys" (k), "scalar" or "indexed", region = and count = of its sums in
--                             float32, for families that need them }
--   input.is_ds(x)            its elements are dS itself, of the pairs' type, [.., q, k]
--   input.sum(x, term, q, k)  the address of the pair's element among the sums of gradient x
--   input.is_by_distance(x)   its indices depend on q and k by their distance alone
--   input.index_by_distance(x)  nil, or how its one index follows from the distance of key and row: { rises = with
--                             the key, index = the text of the index at distance 0, element = of the pass's own element }
--   input.read_by_distance()  nil, or an input of floats whose one read has one index that is k - q or q - k and something
--                             without both, along its last axis: { name =, ctype =, rises = with k, length = of
--                             that axis, index(q, k), place(index) = the address of an element, load(address) }
--   input.pairs_of_element(x) nil, or for each of its reads, whose indices are all linear in q and k, how the pairs of
--                             an element i1, i2, ... are found: { read = its number, count = turns to try, pair = the
--                             declarations of q and k by `turn`, test = that they are a pair of the element's, apart =
--                             what of it needs neither, "" for nothing, b =, h = the element's own, if they are }
--   input.count(x)            elements of the gradient, in the kernel
--   input.split(x, at)        the declarations of the indices i1, i2, ... of element `at`
--   input.store_split(x, value)  the statement that stores the element of those indices
--   input.finish(x, at)       the statements that store element `at` of the sums as the gradient
--   input.blocks(x, size)     of an affine one: blocks that own `size` elements of its affine axis each, an
--                             expression of the recipe
--   input.band(x, size)       the declarations of the first of a block's elements, `first`, and of its other
--                             indices i1, i2, ...; input.length(x) is how many there are on that axis; input.far(x):
--                             32 bits may not hold that or the index, then there is `whole` for `first`, in 64
local trees = run("expr/trees.lua")
local emit, text_of = trees.emit, trees.text_of

local input = { names = {}, grads = {}, staged = {} }
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

local function has_axis(extents, axis) return extents ~= nil and extents:find(axis) ~= nil end

for i, x in ipairs(formula.inputs) do
  local prefix = x.name == "bias" and "" or "in_"
  declared[x.name] = { at = i, input = x, ident = prefix .. x.name, extents = extents_of(x) }
  if x.tensor then input.names[#input.names + 1] = prefix .. x.name end
  if x.tensor and declared[x.name].extents == "1111" and x.elem == "f32" then input.has_f32_number = true end
  if x.grad then
    local extents, counts = declared[x.name].extents, {}
    for _, extent in ipairs(x.extents) do
      local lengths = { b = "b", h = "h", hk = "hk", q = seq.extent_q, k = seq.extent_k, ["1"] = "1" }
      counts[#counts + 1] = lengths[extent] or "max(0, " .. extent .. ")"
    end
    local kinds = { qk = "dense", ["q1"] = "rows", ["1k"] = "keys", ["11"] = "scalar" }
    input.grads[#input.grads + 1] = {
      lengths = counts, name = x.name, output = "d" .. prefix .. x.name, extents = extents,
      batched = has_axis(extents, "b"), headed = has_axis(extents, "h"),
      kind = extents and kinds[extents:sub(3)] or "indexed", region = "sums" .. i, count = table.concat(counts, " * "),
    }
  end
  for _, read in ipairs(x.reads) do
    local keyed = formula.uses(read.node, "k")
    if keyed then
      input.one_differs_by_key, input.differs_by_distance = not input.differs_by_key, input.differs_by_distance ~= false and read.is_by_distance
    end
    input.differs_by_key = input.differs_by_key or keyed
    input.differs_by_pair = input.differs_by_pair or keyed and (formula.uses(read.node, "q") or formula.uses(read.node, "p"))
  end
end

-- The type of a gradient's elements.
local function grad_elem(name) return name == "bias" and spec.grad_elem or declared[name].input.elem end

-- The statement that stores an element of an input's gradient: its address, and the value.
local function store(name, to, value)
  local elem = grad_elem(name)
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

function input.place(x, q, k) return trees.address(declared[x.name].at, true, index_of(x.name, q, k)) end

function input.store(name, q, k, value) return store(name, input.place(declared[name].input, q, k), value) end

function input.element(x) return grad_elem(x.name) end

function input.is_ds(x)
  local own = declared[x.name].input
  local is_matrix = x.kind == "dense" and table.concat(own.reads[1].axis):sub(-2) == "qk"
  return is_matrix and grad_elem(x.name) == spec.elem and own.reads[1].slope == formula.slope
end

-- The stride of an input or a gradient along its i-th axis.
local function stride_of(ident, i)
  return string.format("p.%s_%s", ident, (ident == "bias" or ident == "dbias") and ("bhqk"):sub(i, i) or i - 1)
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

local nodes, wide = {}, {} -- by an extent that is an expression: its node, and whether 32 bits may not hold it
for _, x in ipairs(formula.inputs) do
  for i, extent in ipairs(x.extents) do
    local length = x.lengths[i]
    if length ~= extent then nodes[extent], wide[extent] = length, formula.wide(length) end
  end
end

-- An axis's length in the kernel.
local function length_of(extent)
  local lengths = { b = "p.b", h = "p.h", hk = "p.hk", q = "p." .. seq.extent_q, k = "p." .. seq.extent_k, ["1"] = "1" }
  return lengths[extent] or "(" .. trees.length(nodes[extent]) .. ")"
end

function input.sum(x, term, q, k)
  local own = declared[x.name].input
  local texts = emit(own.reads[term.read].index, { q = q, k = k }).values
  local at = "0"
  local of_frame = seq.frame and seq.frame.first() or {}
  for i, extent in ipairs(own.extents) do
    local first = of_frame[extent] or extent == "q" and seq.first_q or extent == "k" and seq.first_k
    local index = extent == "1" and "0" or "(" .. (first and first .. " + (" .. texts[i] .. ")" or texts[i]) .. ")"
    at = at == "0" and "(i64)" .. index or string.format("(%s) * %s + %s", at, length_of(extent), index)
  end
  return string.format("p.%s + (%s)", x.region, at)
end

function input.is_by_distance(x)
  for _, read in ipairs(declared[x.name].input.reads) do
    if not read.is_by_distance then return false end
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
  return store(x.name, formula.address(declared[x.name].at, true, index, {}), value)
end

function input.finish(x, at)
  return input.split(x, at) .. "\n" .. input.store_split(x, string.format("ldg_f32(p.%s + %s)", x.region, at))
end

function input.index_by_distance(x)
  local reads = declared[x.name].input.reads
  local read = reads[1]
  if #reads ~= 1 or not read.affine then return nil end
  local axes = {} -- which of its indices are those of b and h
  for i, axis in ipairs(read.axis) do axes[axis] = "i" .. i end
  return { rises = read.affine > 0, axis = read.affine_axis, index = text_of(read.index[read.affine_axis], { q = "0", k = "0" }),
           element = "i" .. read.affine_axis, b = axes.b, h = axes.h }
end

function input.read_by_distance()
  for at, x in ipairs(formula.inputs) do
    local read, last = x.reads[1], #x.extents
    local is_read_once = #x.reads == 1 and x.elem ~= "i32" and not formula.takes(formula.mask, at)
    if is_read_once and read.affine_axis == last and not (wide[x.extents[last]] or formula.wide(read.index[last])) then
      return {
        name = x.name, ctype = x.elem == "f32" and "float" or "u16", rises = read.affine > 0, length = length_of(x.extents[last]),
        index = function(q, k) return text_of(read.index[last], { q = q, k = k }) end,
        place = function(index)
          local texts = emit(read.index, { q = "0", k = "0" }).values
          texts[last] = index
          return trees.address(at, false, texts)
        end,
        load = function(place)
          if x.elem == "f32" then return "ldg_f32(" .. place .. ")" end
          return string.format("%s_to_f32(ldg_u16(%s))", x.elem, place)
        end,
      }
    end
  end
end

-- The index that gives q or k, and which of them: one of that alone, or of both where the other is known.
local function solvable(read, extents, known, alone)
  for i, factors in ipairs(read.linear) do
    for _, axis in ipairs { "k", "q" } do
      local other = axis == "k" and "q" or "k"
      local free = factors[other] == 0 or known[other] or not alone
      if extents[i] ~= "1" and factors[axis] ~= 0 and not known[axis] and free then return i, axis end
    end
  end
end

local function way_of(x, at, read)
  local extents, known, solved, lines, tests = declared[x.name].input.extents, {}, {}, {}, {}
  local way, lengths = { read = at }, { q = seq.nq, k = seq.nk }
  local firsts = seq.frame and seq.frame.first() or { q = seq.first_q, k = seq.first_k }
  -- The index of an element as the sequence counts it: of an axis of tokens behind its first one.
  local function own(i)
    local first = firsts[extents[i]]
    return first and string.format("(i%d - %s)", i, first) or "i" .. i
  end
  local function solve(alone)
    local i, axis = solvable(read, extents, known, alone)
    if not i then return false end
    local factor = read.linear[i][axis]
    local others = text_of(read.index[i], { q = axis == "q" and "0" or "q", k = axis == "k" and "0" or "k" })
    if wide[extents[i]] or formula.wide(read.index[i]) then
      lines[#lines + 1] = string.format("const i64 ahead_%s = %s - (%s), all_%s = ahead_%s / %d;", axis, own(i), others, axis, axis, factor)
      lines[#lines + 1] = string.format("const int %s = 0 <= all_%s && all_%s < %s ? (int)all_%s : -1;", axis, axis, axis, lengths[axis], axis)
    else
      lines[#lines + 1] = string.format("const int ahead_%s = (int)%s - (%s), %s = ahead_%s / %d;", axis, own(i), others, axis, axis, factor)
    end
    if math.abs(factor) > 1 then tests[#tests + 1] = string.format("ahead_%s %% %d == 0", axis, math.abs(factor)) end
    tests[#tests + 1] = string.format("0 <= %s && %s < %s", axis, axis, lengths[axis])
    known[axis], solved[i] = true, true
    return true
  end
  while solve(true) do end
  if not known.q and not known.k then solve(false) end
  local apart = {}
  for i, index in ipairs(read.index) do
    local axis = read.axis[i]
    if (axis == "b" or axis == "h") and not way[axis] then
      way[axis] = "(int)i" .. i
    elseif not solved[i] and extents[i] ~= "1" then
      local list = read.linear[i].q == 0 and read.linear[i].k == 0 and apart or tests
      list[#list + 1] = string.format("(%s) == %s", text_of(index, { q = "q", k = "k" }), own(i))
    end
  end
  if not known.q and not known.k then
    way.count = string.format("(i64)%s * %s", seq.nq, seq.nk)
    lines[1] = string.format("const int q = (int)(turn / %s), k = (int)(turn %% %s);", seq.nk, seq.nk)
  elseif not (known.q and known.k) then
    local axis = known.q and "k" or "q"
    way.count = lengths[axis]
    table.insert(lines, 1, string.format("const int %s = (int)turn;", axis))
  else
    way.count = "1"
  end
  way.pair, way.test, way.apart = table.concat(lines, "\n"), table.concat(tests, " && "), table.concat(apart, " && ")
  return way
end

function input.pairs_of_element(x)
  local ways = {}
  for at, read in ipairs(declared[x.name].input.reads) do
    if not read.linear then return nil end
    ways[at] = way_of(x, at, read)
  end
  return ways
end

function input.length(x) return length_of(declared[x.name].input.extents[input.index_by_distance(x).axis]) end

function input.far(x)
  local own, axis = declared[x.name].input, input.index_by_distance(x).axis
  return wide[own.extents[axis]] or formula.wide(own.reads[1].index[axis])
end

function input.blocks(x, size)
  local factors = table.move(x.lengths, 1, #x.lengths, 1, {})
  local axis = input.index_by_distance(x).axis
  factors[axis] = string.format("cdiv(%s, %d)", factors[axis], size)
  return table.concat(factors, " * ")
end

function input.band(x, size)
  local bands, extents = string.format("cdiv(%s, %s)", input.length(x), size), declared[x.name].input.extents
  if input.far(x) then bands = string.format("(int)(((i64)%s + %s - 1) / %s)", input.length(x), size, size) end
  local lines, place = { string.format("const int first = (int)blockIdx.x %% %s * %s;", bands, size) }, "(int)blockIdx.x / " .. bands
  if input.far(x) then
    lines[1] = string.format("const i64 whole = (i64)((int)blockIdx.x %% %s) * %s;", bands, size)
  end
  for i = #extents, 1, -1 do
    if i ~= input.index_by_distance(x).axis and extents[i] ~= "1" then
      lines[#lines + 1] = string.format("const int i%d = %s %% %s;", i, place, length_of(extents[i]))
      place = place .. " / " .. length_of(extents[i])
    end
  end
  return table.concat(lines, "\n")
end

-- Is an input among what gradients of inputs multiply dS by?
local function in_slopes(at)
  for _, x in ipairs(formula.inputs) do
    for _, read in ipairs(x.grad and x.reads or {}) do
      if formula.takes(read.slope, at) then return true end
    end
  end
  return false
end

-- A dense 16-bit input of [..., q, k] that the score reads once.
local function find_dense()
  for _, input in ipairs(formula.inputs) do
    local x = declared[input.name]
    local extents, ident = x.extents, x.ident
    local whole = extents and #x.input.reads == 1 and extents:sub(3) == "qk" and table.concat(x.input.reads[1].axis):sub(-2) == "qk"
    if whole and (input.elem == "bf16" or input.elem == "f16") and not in_slopes(x.at) then
      local terms, axes = {}, x.input.reads[1].axis
      for i, axis in ipairs(axes) do
        if axis == "b" or axis == "h" then terms[#terms + 1] = string.format("%s * %s", axis, stride_of(ident, i)) end
        if axis == "q" then x.stride = stride_of(ident, i) end
      end
      return {
        name = x.input.name, elem = x.input.elem,
        rows = string.format("p.%s + (%s)", ident, #terms > 0 and table.concat(terms, " + ") or "0"),
        stride = x.stride, aligned = aligned_rows(ident, axes),
        batched = has_axis(extents, "b"), headed = has_axis(extents, "h"),
        is_in_mask = formula.takes(formula.mask, x.at),
      }
    end
  end
end

-- input.tiled, if the score allows one, and input.is_read_by_row of the others.
function input.find_tiled(allowed)
  input.tiled = allowed and find_dense() or nil
  for name, x in pairs(declared) do
    for _, read in ipairs(name ~= (input.tiled or {}).name and x.input.reads or {}) do
      input.is_read_by_row = input.is_read_by_row or formula.uses(read.node, "q") or formula.uses(read.node, "p")
    end
  end
end

return input
