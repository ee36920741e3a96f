-- backward_refused.lua: plans of mma_backward that compilers refuse, because they spill. The columns
-- are those of forward_refused.lua.
local mma, heads = run("attention/mma/mma.lua"), run("attention/heads.lua")

local function has_32_keys(plan) return mma.division(plan).warp_kv > 16 end
local function is_deterministic(spec) return spec.deterministic == "true" end

-- dK and dV take most of a thread's registers.
local function fills_registers(spec, plan) return mma.gradients(spec, plan) >= 160 end

-- A dense gradient that is stored where each pair has an element of its own, or beside a mask or ragged rows.
local function stores_much(spec, traits)
  local masked = traits.mask.edge_count > 0 or traits.mask.has_gaps.keys
  for _, x in ipairs(traits.input.grads) do
    if x.stored and (masked or not x.summed or mma.is_ragged(spec)) then return true end
  end
  return false
end

local rows = {
  { cause = "slices", what = "slices, whose places are held, where a warp has 32 keys of more than 48 columns alone",
    when = function(spec, plan)
      return seq.slices and has_32_keys(plan) and not mma.division(plan).warps_share_keys and spec.d + spec.dv > 96
    end,
    spare = 255, spilled = { { "d 64", 140 }, { "d 64, causal", 152 }, { "d 64, deterministic", 52 } } },
  { cause = "layout", what = "packed sequences beside a mask of two bounds and more than 416 columns of K and V",
    when = function(spec, plan, traits)
      return not seq.is_dense and traits.mask.edge_count > 1 and plan.stages > 1 and spec.d + spec.dv > 416
    end,
    spare = 255, spilled = { { "d 256, a window", 40 } } },
  { cause = "dense gradients", what = "warps of 32 keys with a dense gradient beside a light score",
    when = function(spec, plan, traits)
      return has_32_keys(plan) and not mma.division(plan).dq_in_turns and stores_much(spec, traits)
    end,
    spare = function(plan)
      local taken, usual = mma.registers_of_score(spec, plan)
      return usual - taken
    end,
    spilled = { { "d 96, a mask, or a gradient for each pair", 44 } } },
  { cause = "wide heads", what = "pairs of warps that share keys of more than 256 columns of K or V",
    when = function(spec, plan)
      return heads.is_wide(spec) and mma.division(plan).warps_per_key == 2 and not mma.division(plan).dq_in_turns
    end,
    spare = 48, spilled = { { "d 64/512, causal, a dense gradient", 72 }, { "d 64/512, dropout", 16 }, { "d 64/512, ALiBi, a shard", 64 } } },
  { cause = "gradients", what = "wide dK and dV under a window",
    when = function(spec, plan, traits) return fills_registers(spec, plan) and traits.mask.first_key_moves end,
    spare = 12, spilled = { { "d 128/192, a window", 100 } } },
  { cause = "gradients", what = "wide dK and dV of a deterministic kernel with a mask",
    when = function(spec, plan, traits)
      return fills_registers(spec, plan) and is_deterministic(spec) and
        (traits.mask.edge_count > 0 or traits.mask.has_gaps.queries or false)
    end,
    spare = 12, spilled = { { "d 192/128, causal", 24 }, { "d 128/192, causal", 24 } } },
  { cause = "dropout", what = "dropout, where a warp has its keys alone",
    when = function(_, plan, traits) return traits.norm.drop ~= nil and not mma.division(plan).warps_share_keys end,
    spare = 48, spilled = { { "d 64", 184 }, { "d 128", 88 } } },
  { cause = "scores", what = "a deterministic kernel with a score",
    when = function(spec, plan, traits) return is_deterministic(spec) and not traits.score.is_s end,
    spare = 4, spilled = {} },
  { cause = "ragged rows", what = "warps of 16 keys with a score of tanh and rows of no multiple of 128 bytes",
    when = function(spec, plan, traits)
      return not has_32_keys(plan) and not mma.division(plan).dq_in_turns and traits.score.has_tanh and mma.is_ragged(spec)
    end,
    spare = 15, spilled = { { "d 96, a cap", 24 } } },
}

return { rows = rows, compiler = "NVRTC 13.0" }
