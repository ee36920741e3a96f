-- masks.lua: which pairs are visible, as text for the families: hooks.mask.
--
--   mask.tile(q0, q1, k0, k1, h) { never =, always = } of the tile [q0, q1) x [k0, k1), mixed if neither; always_end: nil,
--                             or `always` is that k1 is at most this
--   mask.keys(q0, q1)         first and end of the keys that rows [q0, q1) may see
--   mask.seen_by_all(q0, q1)  nil, or first and end of the keys that all of these rows see
--   mask.first_key(q0, q1)    nil, or that first key, of a kernel that skips no tile too: its tiles lie where those of one
--                             that does are
--   mask.row_sees_a_range     of one row, mask.keys(q, q + 1) are the keys it sees and no others
--   mask.queries(k0, k1)      first and end of the rows that may see keys [k0, k1), whatever the head
--   mask.has_gaps             { keys =, queries = }: tiles inside these ranges may be empty too
--   mask.keys_differ_by_batch the ends of mask.keys depend on it
--   mask.keys_seen, rows_seen what a row sees of the keys, and a key of the rows, on average: expressions of
--                             the recipe, for the cost model
--   mask.first_key_moves      the first key moves on with the rows, the same in all heads: rows next to each other see little of K
--   mask.keys_are_read, last_key_is_read, last_key_is_of_head  ends of mask.keys, or the last one, read memory; the last
--                             one depends on batch or head
--   mask.reads_memory         its test reads memory: only of rows that there are; mask.uses_inputs: it uses an input
--   mask.edge_count           its borders that cut through tiles: each costs a row's block half a tile each way
-- Ranges may leave [0, nq) and [0, nk): families clamp them.
local trees = run("expr/trees.lua")
local emit, text_of = trees.emit, trees.text_of

local mask = { row_sees_a_range = formula.keys.exact_for_one, has_gaps = { keys = not formula.keys.exact, queries = not formula.queries.exact }, edge_count = 0 }
mask.reads_memory, mask.uses_inputs = formula.traits.mask_reads, formula.traits.mask_uses_inputs
if formula.known(formula.never) == false then mask.has_gaps = {} end

-- Does a node, if there is one, depend on the batch or head?
local function is_of_head(node)
  return node ~= nil and (formula.uses(node, "b") or formula.uses(node, "h") or formula.uses(node, "hk"))
end
mask.last_key_is_of_head = is_of_head(formula.keys.last)
mask.last_key_is_read = formula.keys.last ~= nil and formula.reads(formula.keys.last)
for _, side in ipairs({ "first", "last" }) do
  local node = formula.keys[side]
  if node then
    mask.edge_count, mask.keys_are_read = mask.edge_count + 1, mask.keys_are_read or formula.reads(node)
    mask.keys_differ_by_batch = mask.keys_differ_by_batch or formula.uses(node, "b")
  end
end

local begin = formula.first_key
mask.first_key_moves = begin ~= nil and not is_of_head(begin)

function mask.tile(q0, q1, k0, k1, h)
  -- spot "expr.masks.tile"
  local texts = emit({ formula.never, formula.always, formula.always_end }, { q0 = q0, q1 = q1, k0 = k0, k1 = k1, h = h })
  return { never = texts.values[1], always = texts.values[2], always_end = texts.values[3] }
end

-- A bound as an index: one of 64 bits, or far from all positions, is cut to what lengths can be.
local function bound(node, names, default)
  if not node then return default end
  local text = text_of(node, names)
  return formula.far(node) and "clamp_index(" .. text .. ")" or text
end

function mask.keys(q0, q1)
  -- spot "expr.masks.keys"
  return bound(formula.keys.first, { q0 = q0, q1 = q1 }, "0"), bound(formula.keys.last, { q0 = q0, q1 = q1 }, seq.nk)
end

function mask.seen_by_all(q0, q1)
  local keys = formula.seen_by_all
  if not keys.exact then return nil end
  return bound(keys.first, { q0 = q0, q1 = q1 }, "0"), bound(keys.last, { q0 = q0, q1 = q1 }, seq.nk)
end

function mask.first_key(q0, q1) return begin and bound(begin, { q0 = q0, q1 = q1 }) end

function mask.queries(k0, k1)
  local function headless(node) return node and not formula.uses(node, "h") and node or nil end
  local range = formula.queries
  if headless(range.first) ~= range.first or headless(range.last) ~= range.last then mask.has_gaps.queries = true end
  -- spot "expr.masks.queries"
  return bound(headless(range.first), { k0 = k0, k1 = k1 }, "0"), bound(headless(range.last), { k0 = k0, k1 = k1 }, seq.nq)
end

-- Entries of an expression's code, which is at most 64 long (FG_EXPR_MAX); families put up to 20 around it.
local LONGEST = 44

-- The length of the range of a row or key in the middle, where it is a short expression of lengths and
-- constants; else all of the other side.
local function seen(range, names, length)
  local function side(node) return node and formula.recipe(node, names) end
  local first, last = side(range.first), side(range.last)
  local text = length
  if first and last then
    text = string.format("max(min(%s, %s) - max(%s, 0), 1)", last, length, first)
  elseif last then
    text = string.format("max(min(%s, %s), 1)", last, length)
  elseif first then
    text = string.format("max(%s - max(%s, 0), 1)", length, first)
  end
  return (formula.entries(text) or math.huge) <= LONGEST and text or length
end
mask.keys_seen = seen(formula.keys, { q0 = "nq / 2", q1 = "nq / 2 + 1" }, "nk")
mask.rows_seen = seen(formula.queries, { k0 = "nk / 2", k1 = "nk / 2 + 1" }, "nq")

return seq.frame and seq.frame.narrow(mask) or mask
