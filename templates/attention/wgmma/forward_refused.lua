-- forward_refused.lua: plans of wgmma_forward that compilers refuse, because they spill. forward_refused.lua says what
-- the columns of a row are. A plan of three warpgroups or more has few registers to spare: there a row refuses all that it
-- names.
local COMPILER = "NVRTC 13.0"
local columns, tiled_input = run("attention/wgmma/shape.lua").columns, run("attention/wgmma/shape.lua").tiled_input

-- Numbers of S that a thread has.
local function scores(plan) return plan.block_kv // 2 end
local function twice_scores(plan) return 2 * scores(plan) end
local function thrice_scores(plan) return 3 * scores(plan) end
local function has_many_rows(plan) return plan.block_q > 128 end
local function has_most_keys(plan) return plan.block_kv > 96 end
local function has_more_keys(plan) return plan.block_kv > 64 end

local function leaves_no_tile_whole(traits) return traits.mask.tile("q0", "q1", "k0", "k1", "h").always == "0" end
local function reads_keys_one_by_one(traits) return traits.mask.reads_memory and not traits.mask.row_sees_a_range end
-- An input of pairs that is no tile, or a tanh of more than the product.
local function is_loaded_by_pairs(traits)
  return not tiled_input() and (traits.input.differs_by_pair or traits.score.has_tanh and not traits.score.tanhs_are_of_scaled_s)
end
local function has_16_bit_input()
  for _, x in ipairs(formula.inputs) do
    if x.elem == "bf16" or x.elem == "f16" then return true end
  end
  return false
end
-- More than s and terms beside it, without a tanh: s * s, -s, exp(s).
local function is_factored(traits) return not (traits.score.is_s or traits.score.adds_to_s or traits.score.has_tanh) end

local function has_descales_of_blocks(traits) return traits.descale ~= nil and traits.descale.is_of_blocks end

-- What any plan spares.
local rows = {
  { cause = "layout", what = "packed queries beside a cap under a mask, in more than 128 rows",
    when = function(_, plan, traits)
      return seq.is_packed("q") and traits.score.has_tanh and traits.mask.edge_count > 0 and has_many_rows(plan)
    end,
    spare = 255, spilled = { { "d 128, causal, softcap(30.0)", 8 } } },
  { cause = "layout", what = "packed queries and pages under a mask that is tested key by key, in more than 128 rows with 128 keys",
    when = function(_, plan, traits)
      return seq.is_packed("q") and seq.is_paged() and not traits.mask.row_sees_a_range and has_many_rows(plan) and has_most_keys(plan)
    end,
    spare = 255, spilled = { { "d 64, dilated(4)", 36 }, { "d 64, the least", 8 } } },
  { cause = "layout", what = "pages beside a tanh and an input, or beside packed queries and an input by key, in more than 128 rows",
    when = function(_, plan, traits)
      local is_capped = traits.score.has_tanh and #traits.input.names > 0
      return seq.is_paged() and has_many_rows(plan) and (is_capped or seq.is_packed("q") and traits.input.differs_by_key)
    end,
    spare = 255, spilled = { { "d 128, causal, a bias by key", 48 }, { "d 64 and 128, softcap(30.0), a bias by row or key", 16 } } },
  { cause = "layout", what = "keys of many lengths beside an input by key or pair, 128 keys and more than 80 columns of V",
    when = function(spec, plan, traits)
      local by_key = traits.input.differs_by_pair or traits.input.differs_by_key
      return not seq.is_dense and by_key and has_most_keys(plan) and columns(spec.dv) > 80
    end,
    spare = 255, spilled = { { "d 96, a bias by pairs or keys, any mask", 168 } } },
  { cause = "layout", what = "keys of many lengths without a mask, of queries of one, 96 keys and few columns of V, in more than 128 rows",
    when = function(spec, plan, traits)
      local is_wide = has_more_keys(plan) and not has_most_keys(plan) and has_many_rows(plan)
      return not seq.is_dense and not seq.is_packed("q") and is_wide and traits.mask.edge_count == 0 and columns(spec.dv) <= 80
    end,
    spare = 255, spilled = { { "d 72 and 80", 24 } } },
  { cause = "layout", what = "parts of packed sequences, or slices, beside a score, 128 keys and more than 96 columns of V",
    when = function(spec, plan, traits)
      local is_framed = seq.slices or seq.shard and seq.is_packed("q")
      return is_framed and not traits.score.is_s and has_most_keys(plan) and columns(spec.dv) > 96
    end,
    spare = 255, spilled = { { "d 128, a part, causal, softcap(20.0)", 48 }, { "d 128, slices, alibi", 16 } } },
  { cause = "layout", what = "parts of sequences beside a score in more than 128 rows with 128 keys, or packed ones beside an input by key",
    when = function(_, plan, traits)
      local by_key = seq.is_packed("q") and traits.input.differs_by_key
      return seq.shard and has_many_rows(plan) and not traits.score.is_s and (has_most_keys(plan) or by_key)
    end,
    spare = 255, spilled = { { "d 64, s + k / 100", 8 }, { "d 128, causal, s + x[q] * y[k]", 120 } } },
  { cause = "layout", what = "slices beside an input by key, with 128 keys or more than 192 columns of V",
    when = function(spec, plan, traits) return seq.slices and traits.input.differs_by_key and (has_most_keys(plan) or columns(spec.dv) > 192) end,
    spare = 255, spilled = { { "d 64, causal, s + x[q] * y[k]", 40 }, { "d 256, s + x[q] * y[k]", 96 } } },
  { cause = "layout", what = "slices beside a mask of two bounds in more than 128 rows",
    when = function(spec, plan, traits) return seq.slices and has_many_rows(plan) and traits.mask.edge_count > 1 end,
    spare = 255, spilled = { { "d 64, window(20, 3), 128 keys", 60 }, { "d 64 and 128, window(20, 3), 64 keys", 12 } } },
  { cause = "descale", what = "descales of blocks and slices, with more than 192 columns of V, or 96 keys and more than 64 columns or a tanh and the largest product",
    when = function(spec, plan, traits)
      local many = columns(spec.dv) > 64 or traits.max_logit and traits.score.has_tanh
      return has_descales_of_blocks(traits) and seq.slices and (columns(spec.dv) > 192 or has_more_keys(plan) and many)
    end,
    spare = 255, spilled = { { "d 128, causal, 128 keys", 52 }, { "d 128, causal, 96 keys", 40 }, { "d 64, a window, a cap, 128 keys", 12 }, { "d 256, full", 24 } } },
  { cause = "descale", what = "descales of blocks and an input by key, with 96 keys and more than 64 columns of V",
    when = function(spec, plan, traits)
      return has_descales_of_blocks(traits) and traits.input.differs_by_key and has_more_keys(plan) and columns(spec.dv) > 64
    end,
    spare = 255, spilled = { { "d 128, dilated(4), a bias by key", 156 }, { "d 128, the least", 8 } } },
  { cause = "descale", what = "descales of blocks and parts of sequences under a mask that is tested key by key, with 128 keys, or a tanh and the largest product",
    when = function(spec, plan, traits)
      local one_by_one = seq.shard and not traits.mask.row_sees_a_range and columns(spec.dv) > 64
      return has_descales_of_blocks(traits) and one_by_one and (has_most_keys(plan) or traits.max_logit and traits.score.has_tanh)
    end,
    spare = 255, spilled = { { "d 128, dilated(4), a sink, 128 keys, O in float32", 28 }, { "d 128, dilated(4), a cap, 64 keys", 32 } } },
  { cause = "descale", what = "descales of blocks and 160 keys under a mask of two bounds",
    when = function(_, plan, traits) return has_descales_of_blocks(traits) and plan.block_kv > 128 and traits.mask.edge_count > 1 end,
    spare = 255, spilled = { { "d 128, a window", 56 } } },
  { cause = "layout", what = "slices beside more than 128 keys", when = function(_, plan) return seq.slices ~= nil and plan.block_kv > 128 end,
    spare = 255, spilled = { { "e4m3, d 128, full", 104 }, { "e4m3, d 256/128, causal", 16 } } },
  { cause = "layout", what = "packed queries of e4m3 under a mask of two bounds, a K wider than 128, 96 keys and more than 96 columns of V",
    when = function(spec, plan, traits)
      local is_wide = spec.d > 128 and columns(spec.dv) > 96 and columns(spec.dv) <= 128
      return types.q.is_byte and seq.is_packed("q") and traits.mask.edge_count > 1 and is_wide and has_more_keys(plan)
    end,
    spare = 255, spilled = { { "e4m3, d 192/128 to 256/128, window(20, 3)", 16 } } },
  { cause = "layout", what = "slices of e4m3 under a mask, with 128 keys and more than 96 columns of V",
    when = function(spec, plan, traits)
      return types.q.is_byte and seq.slices ~= nil and traits.mask.edge_count > 0 and has_most_keys(plan) and columns(spec.dv) > 96
    end,
    spare = 255, spilled = { { "e4m3, d 128, causal", 24 }, { "e4m3, d 160, window(100, 20)", 24 } } },
  { cause = "layout", what = "packed queries of e4m3 and a sink under a mask of two bounds, with more than 192 columns of V",
    when = function(spec, _, traits)
      local has_sink = (spec.sink or "false") ~= "false"
      return types.q.is_byte and seq.is_packed("q") and has_sink and traits.mask.edge_count > 1 and columns(spec.dv) > 192
    end,
    spare = 255, spilled = { { "e4m3, d 256, window(100, 20), a sink", 16 } } },
  { cause = "layout", what = "packed queries of e4m3, 96 keys and more than 160 columns of V",
    when = function(spec, plan) return types.q.is_byte and seq.is_packed("q") and has_more_keys(plan) and columns(spec.dv) > 160 end,
    spare = 255, spilled = { { "e4m3, d 192, full", 16 }, { "e4m3, d 192, causal", 32 } } },
  { cause = "max_logit", what = "the largest product of e4m3 under a mask, with 128 keys",
    when = function(_, plan, traits) return types.q.is_byte and traits.max_logit and traits.mask.edge_count > 0 and has_most_keys(plan) end,
    spare = 255, spilled = { { "e4m3, d 64, causal", 24 }, { "e4m3, d 64, causal, packed", 124 }, { "e4m3, d 64, a window, packed", 136 } } },
  { cause = "dropout", what = "dropout, and 128 keys with more than 64 columns of V",
    when = function(spec, plan, traits) return traits.norm.drop ~= nil and has_most_keys(plan) and columns(spec.dv) > 64 end,
    spare = 255, spilled = { { "d 128, full", 16 } } },
  { cause = "max_logit", what = "the largest product, and more than 128 rows with a dense input in tiles, 256 rows, parts beside a score, 80 columns of V without a mask, or 128 keys beside a mask of two bounds or a normaliser without a trial",
    when = function(spec, plan, traits)
      if not traits.max_logit or not has_many_rows(plan) then return false end
      local has_parts = (plan.key_parts or 0) > 1 and not traits.score.is_s
      local is_of_80 = columns(spec.dv) == 80 and traits.mask.edge_count == 0
      return has_parts or is_of_80 or plan.block_q > 192 or tiled_input() ~= nil or has_most_keys(plan) and (traits.norm.trial == nil or traits.mask.edge_count > 1)
    end,
    spare = 255, spilled = { { "d 64, a window, f16, 128 keys", 24 }, { "d 64, a cap, parts", 8 }, { "d 72 and 80, full", 16 }, { "d 64, causal retention, 128 keys", 8 }, { "d 64, a bias, 96 keys", 16 }, { "d 128, a slope and a bias, 64 keys", 20 } } },
  { cause = "dropout", what = "dropout and a score, with 128 keys or a tanh and many columns of V",
    when = function(spec, plan, traits)
      local is_scored = traits.norm.drop ~= nil and not traits.score.is_s
      return is_scored and columns(spec.dv) > 64 and has_more_keys(plan) and (has_most_keys(plan) or traits.score.has_tanh)
    end,
    spare = 255, spilled = { { "d 128, a slope, 128 keys", 8 }, { "d 96, a cap and a bias, 96 keys", 32 } } },
  { cause = "parts", what = "a second accumulator of more than 96 columns in parts of the keys",
    when = function(spec, plan, traits) return traits.norm.beside ~= nil and (plan.key_parts or 0) > 1 and columns(spec.dv) > 96 end,
    spare = 255, spilled = { { "d 128, log-softmax", 16 } } },
  { cause = "factor", what = "a dense factor in tiles beside a mask, a trial and more than 96 columns of V, in more than 128 rows",
    when = function(spec, plan, traits)
      local has_mask = traits.mask.edge_count > 0 or not traits.mask.row_sees_a_range
      return tiled_input() ~= nil and not traits.score.adds_to_s and traits.norm.trial ~= nil and has_mask and has_many_rows(plan) and columns(spec.dv) > 96
    end,
    spare = 255, spilled = { { "d 128, causal, s * m", 20 } } },
  { cause = "score", what = "a dense input in tiles", when = function() return tiled_input() ~= nil end, spare = 16, spilled = { { "the least", 4 } } },
  { cause = "score", what = "an input of pairs, or tanh of more than the product",
    when = function(_, _, traits) return is_loaded_by_pairs(traits) end,
    spare = function(plan) return 7 * scores(plan) // 8 end, spilled = { { "d 128, a cap of a biased product, 128 keys", 270 } } },
  { cause = "score", what = "the same with a long score or tanh and 128 keys",
    when = function(_, plan, traits) return is_loaded_by_pairs(traits) and has_most_keys(plan) and (traits.score_is_long or traits.score.has_tanh) end,
    spare = twice_scores, spilled = {} },
  { cause = "score", what = "the same with many columns of V",
    when = function(spec, plan, traits)
      return is_loaded_by_pairs(traits) and columns(spec.dv) > (has_most_keys(plan) and 96 or has_more_keys(plan) and 128 or 256)
    end,
    spare = thrice_scores, spilled = { { "d 192, a table", 24 }, { "d 104, a table", 160 } } },
  { cause = "score", what = "tanh and an input of pairs of 16 bits, and more than 128 columns of K or V",
    when = function(spec, _, traits)
      local of_pairs = traits.input.differs_by_pair and not traits.input.differs_by_distance and has_16_bit_input()
      return of_pairs and traits.score.has_tanh and math.max(spec.d, spec.dv) > 128
    end,
    spare = 255, spilled = { { "d 192/128, window 255, a cap, a dense bias", 16 }, { "d 256, window 255, a cap, a dense bias", 16 } } },
  { cause = "score", what = "an input by key, tanh that is no cap by its range, or a mask with more than one bound or with inputs",
    when = function(_, _, traits)
      local score, mask = traits.score, traits.mask
      return traits.input.differs_by_key or score.has_tanh and not score.cap_of_ranges or mask.has_gaps.keys and not seq.slices or mask.uses_inputs or
        mask.edge_count > 0 and not (score.is_s or score.rows_share_terms)
    end,
    spare = 16, spilled = { { "the least", 4 } } },
  { cause = "score", what = "a V wider than K with a score, or with a mask that is read for each key",
    when = function(spec, plan, traits)
      return spec.dv > spec.d and columns(spec.dv) > 128 and has_more_keys(plan) and (reads_keys_one_by_one(traits) or not traits.score.is_s)
    end,
    spare = twice_scores, spilled = { { "d 128/192 and 128/256, the least", 8 }, { "d 128/192 and 128/256, the most", 96 } } },
  { cause = "score", what = "an input by key with 128 keys and many columns of V, or under a mask that is tested key by key",
    when = function(spec, plan, traits)
      local by_key = has_most_keys(plan) and columns(spec.dv) > 96 and not traits.input.differs_by_pair
      local one_by_one = not traits.mask.row_sees_a_range and columns(spec.dv) > (has_most_keys(plan) and 64 or has_more_keys(plan) and 160 or 256)
      return traits.input.differs_by_key and (by_key or one_by_one)
    end,
    spare = twice_scores, spilled = { { "d 128, one number for each key, the most", 800 }, { "d 96, any, under such a mask", 160 }, { "d 192, the same", 32 } } },
  { cause = "score", what = "a score that differs from key to key: |k - p|, (k - p)^2",
    when = function(_, _, traits) return traits.score.is_uneven_in_k end, spare = 16, spilled = { { "the least", 8 }, { "the most", 1220 } } },
  { cause = "score", what = "the same under a mask that leaves no tile whole, with many columns of V",
    when = function(spec, _, traits) return traits.score.is_uneven_in_k and leaves_no_tile_whole(traits) and columns(spec.dv) > 192 end,
    spare = 40, spilled = {} },
  { cause = "score", what = "the same with 240 columns of V", when = function(spec, _, traits) return traits.score.is_uneven_in_k and columns(spec.dv) == 240 end,
    spare = 48, spilled = { { "d 240, |k - p|", 8 } } },
  { cause = "score", what = "the same with 128 keys, or with 96 and many columns of V or a choice",
    when = function(spec, plan, traits)
      local many = columns(spec.dv) > (traits.input.differs_by_key and 64 or 96)
      return traits.score.is_uneven_in_k and (has_most_keys(plan) or has_more_keys(plan) and (many or traits.score.chooses_unevenly))
    end,
    spare = thrice_scores, spilled = {} },
}

-- What plans of more than two warpgroups refuse besides.
local ALL = 64 -- more than any of them has over
local of_many_rows = {
  { what = "128 keys and any of the rows above",
    when = function(spec, plan, traits)
      for _, row in ipairs(rows) do
        if row.cause == "score" and has_most_keys(plan) and row.when(spec, plan, traits) then return true end
      end
      return false
    end,
    spilled = {} },
  { what = "a score that differs from key to key", when = function(_, _, traits) return traits.score.is_uneven_in_k end, spilled = {} },
  { what = "a score and more than 64 columns of V and 64 keys, or under a mask that leaves no tile whole",
    when = function(spec, plan, traits)
      return not traits.score.is_s and not tiled_input() and (columns(spec.dv) > 64 and has_more_keys(plan) or leaves_no_tile_whole(traits))
    end,
    spilled = { { "d 72 and 80, the most", 40 } } },
  { what = "80 columns of V and a mask that is read for each key",
    when = function(spec, _, traits) return reads_keys_one_by_one(traits) and columns(spec.dv) == 80 end, spilled = { { "d 72 and 80", 8 } } },
  { what = "few columns of V", when = function(spec, _, traits) return columns(spec.dv) < (#traits.input.names > 0 and 48 or 32) end,
    spilled = { { "d 24", 48 }, { "d 32, an input", 8 } } },
  { what = "a score of more than s and terms beside it, few columns of V and 128 keys",
    when = function(spec, plan, traits) return is_factored(traits) and columns(spec.dv) < 64 and has_most_keys(plan) end,
    spilled = { { "d 24 to 48, s * s, -s, exp(s), the most", 48 } } },
  { what = "an input by key, a narrow K and a wide V",
    when = function(spec, _, traits) return traits.input.differs_by_key and spec.d <= 64 and columns(spec.dv) > 96 end, spilled = { { "d 64/128", 32 } } },
  { what = "a score of s and terms beside it, and few columns of V",
    when = function(spec, _, traits)
      return (traits.score.rows_share_terms or traits.score.adds_to_s and not traits.score.is_s) and columns(spec.dv) < 64
    end,
    spilled = { { "d 24 to 40, ALiBi, the most", 24 }, { "d 24, s + k / 100, f16", 8 } } },
  { what = "tanh of more than the product, and few or many columns of V",
    when = function(spec, _, traits)
      return traits.score.has_tanh and not traits.score.tanhs_are_of_scaled_s and (columns(spec.dv) < 48 or columns(spec.dv) > 96)
    end,
    spilled = { { "d 24 to 32, s + tanh(s)", 16 }, { "d 104, s + tanh(s)", 8 } } },
}
local all = table.move(rows, 1, #rows, 1, {})
for _, row in ipairs(of_many_rows) do
  all[#all + 1] = { cause = "rows", what = row.what, spilled = row.spilled, spare = ALL,
                    when = function(spec, plan, traits) return has_many_rows(plan) and row.when(spec, plan, traits) end }
end

return { rows = all, compiler = COMPILER }
