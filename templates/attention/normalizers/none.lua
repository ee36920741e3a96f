-- none.lua: O = S V, linear attention (mathematics.md section 4); what its members are stands in attention/normalizer.lua. There is no
-- state, no constant of a row, and nothing is kept for backward.
local none = {
  about = "none",
  inputs = {}, head_grads = {},
  masked = "0.0f",
  state = {},
  score_is_weight = true,
  has_correction = false,
  ds_is_0_if_masked = false, -- it is as a score of 0, which has a gradient
}

local function times(s, unit) return unit and s .. " * " .. unit or s end

function none.init() return "" end

-- spot "normalizers.none.step"
function none.step(r) return r.each(string.format("%s = %s;", r.p, times(r.s, r.unit))) end

function none.finish(r) return string.format("const float %s = 1.0f;", r.inverse) end

function none.merge(a, b) return string.format("const float %s = 1.0f;\nconst float %s = 1.0f;", a.correction, b.correction) end

function none.resume(r) return string.format("const float %s = 1.0f;", r.weight) end

function none.p(s, _, unit) return times(s, unit) end

-- spot "normalizers.none.ds"
function none.ds(_, dp) return dp end

return none
