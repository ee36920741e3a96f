-- backward_refused.lua: plans of wgmma_backward that compilers refuse, because they spill. attention/mma/forward_refused.lua
-- says what the columns of a row are.
local columns, is_wide = run("attention/wgmma/shape.lua").columns, run("attention/wgmma/backward_wide.lua").is_for

local rows = {
  { cause = "inputs", what = "an input that differs from pair to pair beside a mask",
    when = function(spec, _, traits)
      local input, mask = traits.input, traits.mask
      return is_wide(spec) and input.differs_by_pair and (mask.has_gaps.queries or mask.edge_count > 0 and not input.differs_by_distance)
    end,
    spare = 8, spilled = { { "d 256, a dense bias", 4 }, { "d 256, the same in f16, causal", 24 }, { "d 256, a table by distance", 20 } } },
  { cause = "gradients", what = "an input, or a gradient, that differs from row to row alone, and more than 208 columns",
    when = function(spec, _, traits)
      local differs_by_row = traits.input.is_read_by_row and not traits.input.differs_by_key
      for _, x in ipairs(traits.input.grads) do differs_by_row = differs_by_row or x.kind == "rows" end
      return differs_by_row and columns(math.max(spec.d, spec.dv)) > 208
    end,
    spare = 255, spilled = { { "d 256, a gradient, full", 128 }, { "d 256, the same, a window", 44 }, { "d 256, no gradient", 100 } } },
  { cause = "scores", what = "a score that is more than s and terms beside it, and more than 208 columns of V",
    when = function(spec, _, traits) return is_wide(spec) and not traits.ds_follows_from_p and columns(spec.dv) > 208 end,
    spare = 255, spilled = { { "d 224, a quotient", 24 }, { "d 256, a cap", 144 } } },
  { cause = "gradients", what = "a dense gradient of which each pair has an element of its own, without a mask",
    when = function(spec, _, traits)
      local is_stored = false
      for _, x in ipairs(traits.input.grads) do is_stored = is_stored or x.kind == "dense" and not x.summed end
      return is_wide(spec) and is_stored and traits.mask.edge_count == 0
    end,
    spare = 8, spilled = { { "d 256", 8 } } },
  { cause = "dropout", what = "dropout beside an input and a tanh, or tiles of an input without a gradient, and more than 160 columns of Q and V",
    when = function(spec, _, traits)
      local is_much = traits.score.has_tanh and #traits.input.names > 0 or traits.input.tiled ~= nil and #traits.input.grads == 0
      return traits.norm.drop ~= nil and is_much and columns(spec.d) + columns(spec.dv) > 160
    end,
    spare = 255, spilled = { { "d 128, a bias", 20 }, { "d 128, a cap and a bias with its gradient", 116 } } },
  { cause = "dropout", what = "dropout beside 128 rows and terms beside s",
    when = function(_, plan, traits) return traits.norm.drop ~= nil and plan.block_q == plan.block_kv and not traits.score.is_s end,
    spare = 255, spilled = { { "d 64, causal, a slope", 48 } } },
  { cause = "normaliser", what = "128 rows beside a dS that is not proportional to P, with terms beside s, or a mask of two bounds or gaps",
    when = function(_, plan, traits)
      local is_masked = traits.mask.edge_count > 1 or not traits.mask.row_sees_a_range
      return plan.block_q == plan.block_kv and not traits.norm.ds_is_proportional and (not traits.score.is_s or is_masked)
    end,
    spare = 255, spilled = { { "d 64, retention, a slope", 140 }, { "d 64, log-softmax, a slope", 36 }, { "d 64, sigmoid, a slope", 24 }, { "d 64, sigmoid, a window", 8 }, { "d 64, none, a mask of residues", 16 } } },
  { cause = "layout", what = "packed sequences beside 128 rows, without a mask of one bound, with terms beside s or dropout; all parts of sequences",
    when = function(_, plan, traits)
      return not seq.is_dense and plan.block_q == plan.block_kv and (seq.shard ~= nil or traits.mask.edge_count ~= 1 or not traits.score.is_s or traits.norm.drop ~= nil)
    end,
    spare = 255, spilled = { { "d 64, causal, dropout", 120 }, { "d 64, full", 12 }, { "d 64, a slope", 148 }, { "d 64, a part, causal", 16 } } },
  { cause = "layout", what = "packed sequences beside 129 to 160 columns of Q or V",
    when = function(spec) return not seq.is_dense and is_wide(spec) and columns(math.max(spec.d, spec.dv)) <= 160 end,
    spare = 255, spilled = { { "d 160", 40 } } },
  { cause = "order", what = "an order of adds to dQ beside 128 rows and a score of terms beside s, or a mask of which a row sees no range or that reads memory",
    when = function(spec, plan, traits)
      local score, mask = traits.score, traits.mask
      return spec.deterministic == "true" and plan.block_q == plan.block_kv and
        (score.adds_to_s and not score.is_s or not mask.row_sees_a_range or mask.reads_memory)
    end,
    spare = 255, spilled = { { "d 64, a slope, full", 148 }, { "d 64, the same, causal", 16 }, { "d 64, a mask of residues", 52 }, { "d 64, causal documents", 64 } } },
}

return { rows = rows, compiler = "NVRTC 13.0" }
