-- mma_backward_refused.lua: plans of mma_backward that compilers refuse, because they spill. The columns
-- are those of mma_forward_refused.lua.
local mma = run("attention/mma.lua")

local function has_32_keys(plan) return mma.division(plan).warp_kv > 16 end
local function is_ragged(spec) return spec.d % 64 > 0 or spec.dv % 64 > 0 end
local function is_deterministic(spec) return spec.deterministic == "true" end

-- dK and dV take most of a thread's registers.
local function fills_registers(spec, plan) return mma.gradients(spec, plan) >= 160 end

local rows = {
  { cause = "gradients", what = "wide dK and dV under a window",
    when = function(spec, plan, traits) return fills_registers(spec, plan) and traits.mask.slides end,
    spare = 12, spilled = { { "d 128/192, a window", 100 } } },
  { cause = "gradients", what = "wide dK and dV of a deterministic kernel with a mask",
    when = function(spec, plan, traits)
      return fills_registers(spec, plan) and is_deterministic(spec) and
        (traits.mask.edges > 0 or traits.mask.skips.queries or false)
    end,
    spare = 12, spilled = { { "d 192/128, causal", 24 }, { "d 128/192, causal", 24 } } },
  { cause = "scores", what = "a deterministic kernel with a score",
    when = function(spec, plan, traits) return is_deterministic(spec) and not traits.score.linear end,
    spare = 4, spilled = {} },
  { cause = "ragged rows", what = "warps of 16 keys with a score of tanh and rows of no multiple of 128 bytes",
    when = function(spec, plan, traits)
      return not has_32_keys(plan) and not mma.division(plan).dq_in_turns and traits.score.bends and is_ragged(spec)
    end,
    spare = 15, spilled = { { "d 96, a cap", 24 } } },
}

return { rows = rows, compiler = "NVRTC 13.0" }
