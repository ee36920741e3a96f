-- sequence.lua: how the sequences of queries and of keys lie in memory, the global `seq`. Families know no layout: they emit
-- these texts, in which b, h (query head) and g (its key/value head) stand for where they are known. x is "q" or "k".
--
--   nq, nk             rows of queries and keys of the sequence. Of dense ones names, not variables: a local copy changes what
--                      ptxas makes
--   most_q, most_k     of sequences that are not packed the same of the longest one
--   is_dense           both sides are, and pairs of the launch are those of whole sequences
--   has_dense_pairs    both sides are, and all pairs are of one sequence, or of its part
--   slices             nil, or how pairs are of a list of slices: slices.lua
--   shard              nil, or how rows and keys are parts of sequences: shard.lua
--   frame              nil, or which of these two says where expressions count rows and keys from
--   declare(x)         declares what the texts of the sequence b need, "" for dense ones that are no parts
--   declare_unfound(x) the same of a side that find_tile declares where it is packed, and then ""
--   extent_q, extent_k the extent of a launch that an axis of queries or keys of an input has
--   first_q, first_k   the place of the sequence's first row along such an axis; nil: 0
--   q_rows, k_rows     rows that the sequence has in memory, to be written: those behind nq and nk as 0
--   has_rest(x)        there may be such rows
--   zero_call(tensor)  the function that writes 0 to rows of the tensor
--   zero_rest(tensor, size, width, thread, threads)  the call by which so many threads write 0 to those of the tile of `size` rows
--                      from row `first` on, nil: q0 or k0; fill_rest(tensor, size, value, thread, threads): the same of numbers kept of rows
--   find(x, size, head, heads)  declares from blockIdx.x the first row x0 of a tile of `size` rows, its head, one of `heads`,
--                      its batch, and what texts of this side need; tiles of one head are side by side. Where no row from
--                      x0 on counts, the other side must not be declared
--   find_tile(x, tile, size, first)  the same where the head is known, and the batch of dense sequences: x0 of tile
--                      number `tile` of the head; first: x0 as text of dense sequences, nil: tile * size; name: of the int
--                      that the number of a packed tile becomes, nil: tile; own: of the row, nil: x0
--   tiles(x, size)     tiles of a head, of all sequences where they are packed: is_packed(x)
--   count_tiles(x, size), batches(x)  the same as an expression of the recipe; what it is to be multiplied with
--   rows_of(x, size)   rows of a head up to the end of the last tile, as text; count_rows_of(x, size), of the recipe
--   head_of_rows(h)    the number of query head h among those whose rows lie so, 64 bits; count_heads("h"), of the recipe;
--                      row_of_head(head, i): row_number by the number of the head
--   behind(x, size)    how far behind the head's first row the sequence's lie: "" or " + " and a text
--   kept_rows          numbers kept of rows, as an expression of the recipe
--   q_end(x), k_end(x) a row or key at most behind the last one: "imin(q0 + BLOCK_Q, p.nq)"
--   has_q(q), has_k(k) a test: there is such a row or key
--   all_q(x), all_k(x) a test: there are all rows or keys before x
--   head(tensor, h)    the address of the first row of a head: of q, dq, o, dout a query head's, h if not given, of k, dk, v, dv
--                      a key/value head's, g
--   row(tensor, i)     that of row i
--   stride(tensor)     elements from a row to the next
--   load_rows(to, pitch, tensor, first, count, width, head)  the call that brings rows to shared memory (tile/rows.cut); head:
--                      where the head's rows are, as text, nil: head(tensor)
--   load_tile(tile, chunks, tensor, first, count, width, head, by, found)  the same of asynchronous copies to a tile (tile/tiles.cut); by:
--                      "thread, threads", which bring it; nil: the whole block. found: of pages, where each lane knows the place of
--                      one of at most 32 keys, the names of its page and of its row there: { page, row }; nil: they are looked up
--   kept(tensor, i)    the address of row i's number in lse and its like: float32 for each query head and row
--   split_kept(row, beyond)  declares q and h, and b of dense sequences, of number `row` of all rows, whatever sequence has them;
--                      beyond: a statement where there is no such row; kept_row(tensor): the address of that row
--   row_number(i)      the place of that number from the tensor's first one
--   box(i, head, b)    the last coordinates of a box of a tensor map of dense sequences: row i of that head
--   place(tensor, i, head, b, size)  the coordinates behind the first of a box of `size` rows of a tensor map, from row i of that head
--                      on: rows behind the sequence's last one are 0, or not written. rank(tensor): coordinates in all;
--                      is_ragged(tensor): the map is to be ragged
--   declare_boxes(size)  of pages, behind declare("k"): declares `box`, so many rows that a tile of `size` keys has in one page, from
--                      each multiple of them on: rows of a box of the ragged map, else 1
--   find_row(i)        of pages, behind declare_boxes: finds row i of the sequence; there may be none
--   found_row(tensor)  its number among the tensor's rows, 0 where there is none. place() takes that of its row i by the name `place`
--   locals             names of ints that declare(x) makes, from which all texts follow where b is known
--   inputs             names of the tensors that say where sequences are
local sides = {
  q = run(string.format("attention/sequence/%s.lua", spec.q_layout))("q"),
  k = run(string.format("attention/sequence/%s.lua", spec.kv_layout))("k"),
}
local q, k = sides.q, sides.k
local seq = {
  nq = q.length, nk = k.length, most_q = not q.is_packed and "p.nq" or nil, most_k = not k.is_packed and "p.nk" or nil, extent_q = q.extent, extent_k = k.extent,
  first_q = q.first, first_k = k.is_packed and k.first or nil, q_rows = q.rows, k_rows = k.rows, inputs = {},
  slices = spec.slices == "true" and run("attention/sequence/slices.lua") or nil,
  shard = spec.shard == "true" and run("attention/sequence/shard.lua") or nil,
  kept_rows = q.is_packed and "h * tokens_q" or "b * h * nq",
}
seq.frame = seq.slices or seq.shard
seq.has_dense_pairs = spec.q_layout == "dense" and spec.kv_layout == "dense" and not seq.slices
seq.is_dense = seq.has_dense_pairs and not seq.shard
if seq.slices then table.move(seq.slices.inputs, 1, #seq.slices.inputs, 1, seq.inputs) end
for _, side in ipairs({ q, k }) do table.move(side.inputs, 1, #side.inputs, #seq.inputs + 1, seq.inputs) end
if seq.shard then table.move(seq.shard.inputs, 1, #seq.shard.inputs, #seq.inputs + 1, seq.inputs) end

local SIDE = { q = "q", dq = "q", o = "q", u = "q", dout = "q", ["do"] = "q", k = "k", dk = "k", v = "k", dv = "k" }
local HEAD = { q = "h", k = "g" }

local function joined(...)
  local lines = {}
  for _, line in ipairs({ ... }) do lines[#lines + 1] = line ~= "" and line or nil end
  return table.concat(lines, "\n")
end

if seq.shard then
  for x, side in pairs(sides) do
    side.declare = joined(side.declare, seq.shard.declare(x, side.length))
    side.locals = table.move(seq.shard.locals(x), 1, 2, #(side.locals or {}) + 1, side.locals or {})
  end
end

function seq.declare(x) return sides[x].declare end
function seq.declare_unfound(x) return sides[x].is_packed and "" or sides[x].declare end
function seq.is_packed(x) return sides[x] ~= nil and sides[x].is_packed == true end
function seq.is_paged() return k.is_paged == true end
function seq.has_rest(x) return sides[x].is_packed == true end
function seq.batches(x) return sides[x].is_packed and "1" or "b" end

function seq.tiles(x, size) return sides[x].tiles and sides[x].tiles(size) or string.format("cdiv(%s, %s)", sides[x].length, size) end
function seq.count_tiles(x, size)
  return sides[x].count_tiles and sides[x].count_tiles(size) or string.format("cdiv(n%s, %s)", x, size)
end

function seq.rows_of(x, size)
  return string.format(sides[x].tiles and "(%s) * %s" or "%s * %s", seq.tiles(x, size), size)
end
function seq.count_rows_of(x, size)
  return sides[x].count_tiles and string.format("%s * %s", sides[x].count_tiles(size), size) or string.format("roundup(n%s, %s)", x, size)
end

-- spot "sequence.find_tile"
function seq.find_tile(x, tile, size, first, name, own)
  name, own = name or "tile", own or x .. "0"
  if not sides[x].is_packed then
    return joined(string.format("const int %s = %s;", own, first or tile .. " * " .. size), sides[x].declare)
  end
  return joined(string.format("const int %s = %s, b = %s;", name, tile, sides[x].find(name, size)), sides[x].declare,
                string.format("const int %s = %s * %s - %s;", own, name, size, sides[x].base(size)))
end

-- spot "sequence.find"
function seq.find(x, size, head, heads)
  if sides[x].is_packed then
    return joined(string.format("const int tiles = %s, block = (int)blockIdx.x, %s = block / tiles;", seq.tiles(x, size), head),
                  seq.find_tile(x, "block % tiles", size))
  end
  return joined(string.format("const int tiles = %s, block = (int)blockIdx.x;", seq.tiles(x, size)),
                string.format("const int %s0 = block %% tiles * %s, %s = block / tiles %% %s, b = block / tiles / %s;", x, size, head, heads, heads),
                sides[x].declare)
end

-- spot "sequence.behind"
function seq.behind(x, size) return sides[x].is_packed and " + " .. sides[x].base(size) or "" end
function seq.head_of_rows(h) return q.is_packed and "(i64)" .. h or "(i64)b * p.h + " .. h end
function seq.row_of_head(head, i)
  return q.is_packed and string.format("%s * p.tokens_q + token_q + %s", head, i) or string.format("%s * p.nq + %s", head, i)
end
function seq.count_heads(x) return (q.is_packed and "" or "b * ") .. x end

function seq.zero_call(tensor) return (tensor == "u" or types[tensor].name == "f32") and "zero_f32_rows" or "zero_rows" end

-- spot "sequence.zero_rest"
function seq.zero_rest(tensor, size, width, thread, threads, first)
  local x = SIDE[tensor]
  first = first or x .. "0"
  return string.format(seq.zero_call(tensor) .. "(%s, %s, imax(%s, %s), imin(%s + %s, %s), %s, %s, %s);", seq.head(tensor), seq.stride(tensor), first,
                       sides[x].length, first, size, sides[x].rows, width, thread, threads)
end
function seq.fill_rest(tensor, size, value, thread, threads, first)
  first = first or "q0"
  return string.format("fill_rows(%s, imax(%s, %s), imin(%s + %s, %s), %s, %s, %s);", seq.kept(tensor, "0"), first, q.length, first, size,
                       q.rows, value, thread, threads)
end

function seq.q_end(x) return "imin(" .. x .. ", " .. seq.nq .. ")" end
function seq.k_end(x) return "imin(" .. x .. ", " .. seq.nk .. ")" end
function seq.has_q(row) return row .. " < " .. seq.nq end
function seq.has_k(key) return key .. " < " .. seq.nk end
function seq.all_q(x) return x .. " <= " .. seq.nq end
function seq.all_k(x) return x .. " <= " .. seq.nk end

local function address(tensor, place) return string.format("p.%s + (%s)", tensor, place) end
function seq.head(tensor, h) return address(tensor, sides[SIDE[tensor]].head(tensor, h or HEAD[SIDE[tensor]])) end
function seq.row(tensor, i) return address(tensor, sides[SIDE[tensor]].row(tensor, HEAD[SIDE[tensor]], i)) end
function seq.stride(tensor) return string.format("p.%s_n", tensor) end

function seq.load_rows(to, pitch, tensor, first, count, width, head)
  local x = SIDE[tensor]
  head = head or seq.head(tensor)
  local last = string.format("%s, %s, %s, %s", first, count, sides[x].length, width)
  local of_bytes = types[tensor].is_byte and "_e4m3" or ""
  if not sides[x].is_paged then
    return string.format("load_rows" .. of_bytes .. "(%s, %s, %s, %s, %s);", to, pitch, head, seq.stride(tensor), last)
  end
  return string.format("load_paged_rows" .. of_bytes .. "(%s, %s, %s, p.%s_b, %s, pages, p.page, row_k, %s);", to, pitch, head, tensor,
                       seq.stride(tensor), last)
end

function seq.load_tile(tile, chunks, tensor, first, count, width, head, by, found)
  local x, ending = SIDE[tensor], types[tensor].bytes < types.operand.bytes and "_e4m3" or ""
  local call = ending .. (by and "_by(" .. by .. ", " or "(")
  head = head or seq.head(tensor)
  local to = string.format("%s%s, %s, %s, %s", call, tile, chunks, count, head)
  local last = string.format("%s, %s, %s", first, sides[x].length, width)
  if not sides[x].is_paged then return string.format("load_tile%s, %s, %s);", to, seq.stride(tensor), last) end
  if found then return string.format("load_found_tile%s, %s, %s);", to, sides[x].found_place(tensor, table.unpack(found)), last) end
  return string.format("load_paged_tile%s, p.%s_b, %s, pages, p.page, row_k, %s);", to, tensor, seq.stride(tensor), last)
end

-- spot "sequence.row_number"
function seq.row_number(i)
  return q.is_packed and string.format("(i64)h * p.tokens_q + token_q + %s", i) or string.format("((i64)b * p.h + h) * p.nq + %s", i)
end

-- spot "sequence.split_kept"
function seq.split_kept(row, beyond)
  if q.is_packed then
    return string.format("if (%s >= (i64)p.h * p.tokens_q) { %s }\nconst i64 q = %s %% p.tokens_q;\nconst i64 h = %s / p.tokens_q;", row, beyond, row, row)
  end
  return string.format("if (%s >= (i64)p.b * p.h * p.nq) { %s }\nconst i64 q = %s %% p.nq;\nconst i64 h = %s / p.nq %% p.h;\nconst i64 b = %s / p.nq / p.h;",
                       row, beyond, row, row, row)
end

function seq.kept_row(tensor)
  return q.is_packed and string.format("p.%s + (h * p.%s_h + q * p.%s_n)", tensor, tensor, tensor) or seq.row(tensor, "q")
end

function seq.kept(tensor, i) return string.format("p.%s + (%s)", tensor, seq.row_number(i)) end

function seq.box(i, head, b) return string.format("%s, %s, %s", i, head, b or "b") end

-- A box of a ragged map (recipe.h).
-- spot "sequence.place"
function seq.place(tensor, i, head, b, size)
  local side = sides[SIDE[tensor]]
  if not side.is_ragged then return seq.box(i, head, b) end
  local there = string.format("imax(0, imin(%s, %s - (%s)))", size, side.length, i)
  return string.format("(1 << 30) - %s, %s + %s, 1 << 30, %s", there, side.place(tensor, i), there, head)
end
function seq.is_ragged(tensor) return SIDE[tensor] ~= nil and sides[SIDE[tensor]].is_ragged == true end
seq.declare_boxes, seq.find_row, seq.found_row = k.declare_boxes, k.find_row, k.found_row
function seq.rank(tensor) return seq.is_ragged(tensor) and 5 or 4 end

-- Names of what is declared, ints that say all of a sequence of which b is known.
seq.locals = {}
for _, side in ipairs({ q, k }) do table.move(side.locals or {}, 1, #(side.locals or {}), #seq.locals + 1, seq.locals) end

return seq
