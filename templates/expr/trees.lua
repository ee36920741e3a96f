-- trees.lua: the trees of the spec's expressions as text, in the kernel's names.
local trees = {}

-- The key that row q sits at when both ends align.
-- spot "expr.trees.place"
local function place(q, nq, nk) return q .. " + " .. nk .. " - " .. nq end
function trees.place(q) return seq.frame and seq.frame.key_of(q) or place(q, seq.nq, seq.nk) end

local always = { b = "b", h = "h", hk = "g", nq = seq.nq, nk = seq.nk, nh = "p.h", first_q = seq.first_q, first_k = seq.first_k }

-- The names with the kernel's own for what they leave out, and where the pair lies: its row and key as expressions count them. Where
-- s is a unit times the raw product, s is made of these two.
local function completed(names)
  if seq.frame then names = seq.frame.place(names) end
  names.s = names.s or names.s_unit and names.s_unit .. " * " .. names.s_raw
  for name, text in pairs(always) do names[name] = names[name] or text end
  if names.q then names.p = place(names.q, names.nq, names.nk) end
  return names
end

-- What formula.emit gives for these nodes and names; declarations end without a line's end.
function trees.emit(nodes, names)
  local texts = formula.emit(nodes, completed(names))
  texts.head, texts.row = texts.head:gsub("\n$", ""), texts.row:gsub("\n$", "")
  return texts
end

-- The text of the factor of the raw product in a node that is s times values of a head: formula.unit.
function trees.unit(node, names) return formula.unit(node, completed(names)) end

-- The address of an element of the spec's i-th input, or of its gradient, by the texts of its indices.
function trees.address(i, gradient, index) return formula.address(i, gradient, index, always) end

-- The text of an extent: the lengths in it are those of the launch, whatever sequence, slice or part a pair is of.
function trees.length(node) return formula.emit({ node }, { nq = "p.nq", nk = "p.nk" }).values[1] end

-- The text of one node, nothing taken out of it.
function trees.text_of(node, names) return trees.emit({ node }, names).values[1] end

return trees
