-- rows.lua: a thread's two rows in wgmma_forward as the normaliser has them, 0 and 1: lane / 4 and 8 more. Given the
-- fragment, the scores, `pair`, how two warpgroups share rows, and `writes`, the test that this one writes what is kept of them
-- (weights.cut), it gives
--
--   row[r]                row r, whose scores are in `score`
--   states()              the names of both rows' states
--   trials(name, first, from)  for each row { macro =, behind =, safe =, weight_of = }: a macro of weights by norm.trial, of that
--                         name, and trial's texts. from: what weights are made from: nil, "exponent", or "bits", of which
--                         seen0 and seen1 have one for each column that the mask shows
--   step(r)               { text =, needs_most = }: norm.step, and whether it asks for the row's largest score, `most`
local text = run("expr/text.lua")
local mask, norm, cap, shared = hooks.mask, hooks.norm, hooks.score.cap_of_ranges, hooks.score.rows_share_terms

-- Whether row q sees one key at most, as far as its range of keys says it.
local function sees_one_key()
  local first, last = mask.keys("q", "q + 1")
  local range = first == "0" and text.least(seq.nk, last) or string.format("%s - imax(0, %s)", text.least(seq.nk, last), first)
  return string.format("%s%s <= 1", mask.keys_are_read and "q < " .. seq.nq .. " && " or "", range)
end

local function packed(value) return string.format("%s(%s(%s))", types.p.to_f32, types.p.from_f32, value) end

return function(fragment, scores, pair, writes)
  local rows = { row = {}, reweighs = {} }

  -- The test of a row's bit of a pair's column.
  function rows.seen_bit(r) return string.format("seen%d & COLUMN_BIT(column)", r) end

  local function row_of(r, from)
    local row = {
      s = "score", p = "weight", inverse = "inverse", second = norm.second_of_row, beside = norm.beside and "beside" or nil,
      correction = norm.has_correction and not cap and "correction" or nil,
      unit = scores.is_plain and "scale" or nil, log2 = norm.unit == "log2" and not scores.is_plain,
      clips = norm.clips, below = types.p.below, exponent = from == "exponent" and scores.exponent[r].text or nil, seen = from == "bits" and rows.seen_bit(r) or nil,
    }
    if norm.second then
      row.take = string.format("stg_f32_if(%s, %s, %slane %% 4 == 0 && q < %s && p.%s);", seq.kept(norm.second, "q"), norm.second_of_row,
                               writes and writes .. " && " or "", seq.nq, norm.second)
    end
    norm.states(function(name) return name .. r end, row)
    if norm.trial then
      local sums = fragment.sums(r)
      row.partial, row.total, row.keep = "sum", "total" .. r, "keep"
      row.origin, row.largest, row.start = cap and cap.origin, cap and cap.largest, shared and "start" or nil
      row.leader = scores.leader(r)
      row.alone, row.packed = not seq.slices and sees_one_key() or nil, packed
      row.above = row.leader and scores.above and scores.above.value or nil
      function row.partial_sum() return #sums > 1 and "(" .. table.concat(sums, " + ") .. ")" or sums[1] end
    end
    function row.sum(value)
      local sum = "quad_sum(" .. value .. ")"
      return pair and pair.sum(sum) or sum
    end
    function row.max()
      rows.needs_most = true
      return "most"
    end
    function row.each(body)
      rows.reweighs[r] = body
      return rows.reweigh and fragment.weigh_row(r, rows.reweigh[r]) or ""
    end
    return norm.row(row)
  end
  for r = 0, 1 do rows.row[r] = row_of(r) end

  function rows.states() return norm.states(function(name) return name .. "0, " .. name .. "1" end) end

  -- The first time, what the step does with scores is asked for of both rows: macros are declared for the two together.
  function rows.step(r)
    if not rows.reweigh then
      for each = 0, 1 do norm.step(rows.row[each]) end
      rows.reweigh = rows.reweighs[0] and fragment.of_weight("REWEIGH", rows.reweighs)
    end
    rows.needs_most = false
    local text = norm.step(rows.row[r])
    return { text = text, needs_most = rows.needs_most }
  end

  function rows.trials(name, first, from)
    local trials, bodies, later = {}, {}, {}
    for r = 0, 1 do
      local row = row_of(r, from)
      trials[r] = norm.trial(row, first)
      bodies[r], later[r] = trials[r].weight, norm.trial(row, false).weight
    end
    local is_as_later = bodies[0] == later[0] and bodies[1] == later[1]
    local macros = fragment.of_weight(is_as_later and name or name .. "_FIRST", bodies, from == "exponent")
    for r = 0, 1 do trials[r].macro = macros[r] end
    return trials
  end
  return rows
end
