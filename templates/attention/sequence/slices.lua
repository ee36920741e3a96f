-- slices.lua: pairs of a list of slices (slices=true), seq.slices: where a pair lies in the slice that it is of, and what of it
-- that shows. Rows and keys are those of all tokens in every text of a family; expressions count them from the slice's first
-- row and key. tile/slices.cut has the functions, slices.cut beside this file the walk over the slices of a tile.
--
--   of                 the name of the kernel's token_slice; a family may put another one there while it asks for texts
--   place(names)       formula.emit's names with those of the slice in place of the launch's
--   first              { q =, k = }: the token of its row 0 and key 0
--   narrow(mask)       masks.lua's hooks with what the slice shows; has_gaps: those of the mask inside it
--   named(name, give)  what give() returns where the slice is that variable
--   first_tile(q0, first, size)  where tiles of keys begin
--   add_list(description, x, size, name, early)  the steps and the scratch of slices.cut
--   inputs             names of the tensors that are the list
local text = run("expr/text.lua")
local slices = { of = "slice", threads = 256, inputs = { "q_ranges", "k_ranges", "kinds" } }

local function member(name) return slices.of .. "." .. name end
local function call(name, ...) return string.format("%s(%s)", name, table.concat({ slices.of, ... }, ", ")) end

function slices.first() return { q = member("q"), k = member("k") } end

-- Bounds of a tile are cut to the slice, which it may leave.
-- spot "sequence.slices.place"
function slices.place(names)
  local made = {}
  for name, text in pairs(names) do made[name] = text end
  local function own(x, name, format)
    if names[name] then made[name] = string.format(format, names[name], member(x)) end
  end
  own("q", "q", "%s - %s")
  own("k", "k", "%s - %s")
  own("k", "k_base", "%s - %s")
  own("q", "q0", "imax(0, %s - %s)")
  own("k", "k0", "imax(0, %s - %s)")
  if names.q1 then made.q1 = string.format("imin(%s - %s, %s)", names.q1, member("q"), member("nq")) end
  if names.k1 then made.k1 = string.format("imin(%s - %s, %s)", names.k1, member("k"), member("nk")) end
  made.nq, made.nk = member("nq"), member("nk")
  made.first_q, made.first_k = member("q"), member("k")
  made.has_row = names.q and call("slice_has_row", names.q) or nil
  return made
end

-- The range of the slice, and of the mask inside it, as tokens.
local function within(own, first, last, token, length)
  local least, most = own.first, own.last
  -- spot "sequence.slices.within"
  if first ~= "0" then least = string.format("imax(%s, %s + (%s))", least, member(token), first) end
  if last ~= length then most = string.format("imin(%s, %s + (%s))", most, member(token), last) end
  return least, most
end

function slices.narrow(mask)
  slices.has_gaps = mask.has_gaps
  mask.has_gaps = { keys = true, queries = true }
  local tile, keys, queries, nq, nk = mask.tile, mask.keys, mask.queries, seq.nq, seq.nk
  function mask.tile(q0, q1, k0, k1, h)
    local own = tile(q0, q1, k0, k1, h)
    local bounds = { q0, q1, k0, k1 }
    local shows, fills = call("slice_shows_some", table.unpack(bounds)), call("slice_shows_all", table.unpack(bounds))
    -- spot "sequence.slices.tile"
    return { never = own.never == "0" and "!" .. shows or string.format("!%s || (%s)", shows, own.never),
             always = own.always == "0" and "0" or own.always == "1" and fills or string.format("%s && (%s)", fills, own.always) }
  end
  function mask.keys(q0, q1)
    local first, last = keys(q0, q1)
    return within({ first = call("slice_first_key", q0), last = call("slice_key_end", q1) }, first, last, "k", nk)
  end
  function mask.queries(k0, k1)
    local first, last = queries(k0, k1)
    return within({ first = call("slice_first_row", k0), last = call("slice_row_end", k1) }, first, last, "q", nq)
  end
  function mask.seen_by_all() return nil end
  function mask.first_key() return nil end
  mask.row_sees_a_range, mask.first_key_moves, mask.edge_count = false, false, math.max(mask.edge_count, 1)
  mask.keys_seen, mask.rows_seen = "nk", "nq"
  return mask
end

-- The first key of the first tile of `size` keys that rows from q0 on take, where `first` is mask.keys' first key. Tiles lie where the
-- slice has them, whatever the mask inside it: so they do in a kernel that skips no tile. Where blocks of tokens have descales they lie
-- side by side from the first token on.
function slices.first_tile(q0, first, size)
  -- spot "sequence.slices.first_tile"
  if (spec.descale_block or "0") ~= "0" then return text.first_tile(first, size) end
  return string.format("tile_from(%s, %s, %s)", call("slice_first_key", q0), first, size)
end

-- What a function gives while the kernel's slice has another name.
function slices.named(name, give)
  local outside = slices.of
  slices.of = name
  local texts = table.pack(give())
  slices.of = outside
  return table.unpack(texts)
end

-- Adds to a description the list of slices of each tile of `size` rows or keys, and first of all steps the pass that makes it.
function slices.add_list(description, x, size, name, early)
  local tiles = seq.count_tiles(x, size)
  table.insert(description.regions, { name = name, count = string.format("%s * 2 * cdiv(slices, 32)", tiles) })
  table.insert(description.steps, 1, { entry = "attn_slices_" .. name, grid = { tiles, "1", "1" }, threads = slices.threads, registers = 40,
                                       work = "slices", shared = {}, early = early })
  local constants = description.constants
  if constants[#constants][1] ~= "SLICE_THREADS" then
    constants[#constants + 1] = { "SLICE_THREADS", slices.threads, "of a block that makes a tile's list of slices" }
  end
end

-- The test of a pair inside the slice, before which nothing is read for it. shown: a family's own test that the slice shows it.
function slices.test(q, k, test, shown)
  local shows = shown or call("slice_shows", q, k)
  return test == "1" and shows or test == "0" and "0" or string.format("%s && (%s)", shows, test)
end

-- The key that row q sits at when both ends of its slice align.
function slices.key_of(q) return string.format("%s - %s + %s - %s + %s", q, member("q"), member("nk"), member("nq"), member("k")) end

return slices
