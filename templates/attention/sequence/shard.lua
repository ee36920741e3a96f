-- shard.lua: parts of sequences (shard=true), seq.shard: a launch has rows from pos_q on and keys from pos_k on of a sequence that
-- has whole_q rows and whole_k keys. Rows and keys are the launch's own in every text of a family; expressions and dropout count
-- them from the sequence's first row and key. It gives what slices.lua does of `place`, `first`, `key_of` and `narrow`.
--
--   inputs         names of the tensors that say where parts are
--   declare(x, length)  what the texts of this side need, where b is known and `length`, of the launch's own rows or keys
--   locals(x)      the names of these
local shard = { inputs = { "pos_q?", "pos_k?", "whole_q?", "whole_k?" } }

function shard.declare(x, length)
  -- spot "sequence.shard.declare"
  return string.format([[
const int pos_%s = part_number(p.pos_%s, p.b, b, 0);
const int whole_%s = part_number(p.whole_%s, p.b, b, %s);]], x, x, x, x, length)
end

function shard.locals(x) return { "pos_" .. x, "whole_" .. x } end

-- Where row 0 and key 0 of the whole sequence would lie along an axis of the launch's tensors.
function shard.first()
  -- spot "sequence.shard.first"
  local function first(own, x) return string.format(own and "(%s - pos_%s)" or "(-pos_%s)", own or x, x) end
  return { q = first(seq.first_q, "q"), k = first(seq.first_k, "k") }
end

-- spot "sequence.shard.place"
function shard.place(names)
  local made = {}
  for name, text in pairs(names) do made[name] = text end
  for _, name in ipairs({ "q", "q0", "q1" }) do made[name] = names[name] and names[name] .. " + pos_q" end
  for _, name in ipairs({ "k", "k_base", "k0", "k1" }) do made[name] = names[name] and names[name] .. " + pos_k" end
  local first = shard.first()
  made.has_row = names.q and seq.has_q(names.q)
  made.first_q, made.first_k, made.nq, made.nk = first.q, first.k, "whole_q", "whole_k"
  return made
end

-- The launch's own key, or row, of one of the whole sequence. Where nothing bounds it, it is the launch's own already.
local function own(x, bound, unbound)
  if bound == unbound then return bound end
  -- spot "sequence.shard.own"
  return string.format("(%s) - pos_%s", bound, x)
end

-- masks.lua's hooks, whose ranges are of the whole sequence.
function shard.narrow(mask)
  local tile, nq, nk = mask.tile, seq.nq, seq.nk
  local function ranged(name, x, length)
    local range = mask[name]
    mask[name] = function(from, to)
      local first, last = range(from, to)
      return first and own(x, first, "0"), last and own(x, last, length)
    end
  end
  ranged("keys", "k", nk)
  ranged("seen_by_all", "k", nk)
  ranged("first_key", "k", nk)
  ranged("queries", "q", nq)
  function mask.tile(q0, q1, k0, k1, h)
    local made = tile(q0, q1, k0, k1, h)
    made.always_end = made.always_end and own("k", made.always_end)
    return made
  end
  return mask
end

-- The launch's own key that row q sits at when both ends of the whole sequence align.
function shard.key_of(q) return string.format("%s + pos_q + whole_k - whole_q - pos_k", q) end

return shard
