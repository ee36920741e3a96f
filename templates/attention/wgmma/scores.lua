-- scores.lua: the scores of a thread's two rows of wgmma_forward, as text. Row r is q0 or q1 in it, the key is
-- `column` behind k_lane, the product is `score`. Given forward.cut's tile and input it gives
--
--   is_plain           the score is the scaled product: what there is to make of it is the normaliser's
--   pair[r]            hooks.pair of row r; its score is in units of log 2 where the normaliser has that unit
--   terms[r]           the pair whose terms row r takes for its score: rows may share those of the first one, so that
--                      what a key adds is one number for both
--   exponent[r]        { row =, text = } of the score less the row's reference, by terms[r]; nil: the normaliser has no
--                      trial or takes the product
--   head, exponent_head  the head's declarations for `pair`, and for `exponent` or ""
--   leader(r)          the row whose terms row r takes, where it is another one
--   above              nil, or { head =, row =, value = } of what row 1's scores are larger than by row 0's terms
--   reads_memory       a pair's score reads memory
--   seen(r)            the test of a pair that the mask may hide
--   whole, first_whole the test that the rows see all of a tile, and of the first tile. Keys go from the last to the
--                      first: only the first tile may reach beyond the tensor, but of slices any
local text = run("expr/text.lua")
local mask, score, norm = hooks.mask, hooks.score, hooks.norm
local SHUFFLED_SCALE = "shfl(ALL_LANES, p.scale, 0)"

return function(tile)
  local scores = { is_plain = score.is_s, pair = {}, terms = {}, exponent = {}, head = "", exponent_head = "" }
  local cap, shared = score.cap_of_ranges, score.rows_share_terms

  local function pair_of(r, names)
    names.q, names.k, names.k_base, names.k_offset = "q" .. r, "(k_lane + column)", "k_lane", "column"
    names.shown = string.format("(seen%d & COLUMN_BIT(column)) != 0", r)
    names.s_unit, names.s_raw, names.hoist = use.scale_stays_in_register and SHUFFLED_SCALE or score.unit, "score", true
    return hooks.pair(names)
  end

  -- A capped product is s (a + b s^2 + c s^4) less the reference of all rows.
  local function exponent_of(r)
    if cap then return { row = "", text = "odd_f32(score, cap1, cap3, cap5) - " .. cap.origin } end
    local pair = pair_of(r, { exponent = true, origin = "m" .. r, reach = score.has_tanh and "reach" or nil, join = true, s_first = shared,
                              of_head = "of_exponent", of_row = string.format("of_row%d_", r) })
    scores.exponent_head = pair.head
    return { row = pair.row, text = pair.score }
  end

  for r = 0, 1 do
    scores.pair[r] = pair_of(r, { exponent = norm.unit == "log2" and not score.is_s })
    scores.terms[r] = shared and scores.pair[0] or scores.pair[r]
    if norm.trial and not score.is_s then
      scores.exponent[r] = shared and r > 0 and { row = "", text = scores.exponent[0].text } or exponent_of(r)
    end
  end
  scores.head = scores.pair[0].head

  -- A number that is shuffled stays in a register: ptxas neither loads nor makes it again for each tile.
  local function shuffled(head) return (head:gsub("ldg_f32%b()", "shfl(ALL_LANES, %0, 0)")) end
  if use.number_stays_in_register then
    scores.head, scores.exponent_head = shuffled(scores.head), shuffled(scores.exponent_head)
  end

  function scores.leader(r) return shared and r > 0 and 0 or nil end
  scores.above = shared and score.above("q1", "q0") or nil

  scores.reads_memory = scores.pair[0].score_reads
  local reads_rows = mask.reads_memory or scores.reads_memory or scores.pair[0].row_reads -- only those that there are
  function scores.seen(r)
    return text.all_of(reads_rows and seq.has_q("q" .. r) or "1", seq.has_k("(k_lane + column)"), scores.pair[r].test)
  end
  local whole = text.all_of(reads_rows and (tile.all_rows or seq.all_q("row0 + 64")) or "1", tile.always)
  scores.first_whole = text.all_of(whole, seq.all_k("k0 + BLOCK_KV"))
  scores.whole = seq.slices and scores.first_whole or whole
  return scores
end
