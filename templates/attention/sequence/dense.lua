-- dense.lua: sequences that all have the same lengths, [b, n, h, d] with any strides. A layout is a table of texts, in which
-- b, h (query head) and g (its key/value head) stand for where they are known:
--
--   nq, nk             rows of queries and keys of the sequence. Names, not variables: a local copy changes what ptxas makes
--   most_q, most_k     the same of the longest sequence, for grids
--   q_end(x), k_end(x) a row or key at most behind the last one: "imin(q0 + BLOCK_Q, p.nq)"
--   has_q(q), has_k(k) a test: there is such a row or key
--   all_q(x), all_k(x) a test: there are all rows or keys before x
--   head(tensor, h)    the address of the first row of a head: of q, dq, o, dout a query head's, h if not given, of k, dk, v, dv
--                      a key/value head's, g
--   row(tensor, i)     that of row i
--   stride(tensor)     elements from a row to the next
--   kept(tensor, i)    the address of row i's number in lse and its like: float32 for each query head and row
--   row_number(i)      the place of that number from the tensor's first one
--   box(i, head, b)    the last coordinates of a box of a tensor map: row i of that head
local seq = { nq = "p.nq", nk = "p.nk", most_q = "p.nq", most_k = "p.nk" }

local HEADS = { q = "h", dq = "h", o = "h", dout = "h", k = "g", dk = "g", v = "g", dv = "g" }

function seq.q_end(x) return "imin(" .. x .. ", p.nq)" end
function seq.k_end(x) return "imin(" .. x .. ", p.nk)" end
function seq.has_q(q) return q .. " < p.nq" end
function seq.has_k(k) return k .. " < p.nk" end
function seq.all_q(x) return x .. " <= p.nq" end
function seq.all_k(x) return x .. " <= p.nk" end

-- spot "sequence.dense.head"
function seq.head(tensor, h) return string.format("p.%s + (b * p.%s_b + %s * p.%s_h)", tensor, tensor, h or HEADS[tensor], tensor) end
-- spot "sequence.dense.row"
function seq.row(tensor, i)
  return string.format("p.%s + (b * p.%s_b + %s * p.%s_h + %s * p.%s_n)", tensor, tensor, HEADS[tensor], tensor, i, tensor)
end
function seq.stride(tensor) return string.format("p.%s_n", tensor) end

function seq.row_number(i) return string.format("((i64)b * p.h + h) * p.nq + %s", i) end

function seq.kept(tensor, i) return string.format("p.%s + (%s)", tensor, seq.row_number(i)) end

function seq.box(i, head, b) return string.format("%s, %s, %s", i, head, b or "b") end

return seq
