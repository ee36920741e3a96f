-- cap.lua: exponents of a score factor * tanh(x), x a multiple of the product, as a polynomial in x. Given
-- the factor it gives nil where none will do, or
--
--   odd       the texts of k1, k3, k5: factor * tanh(x) * log2 e is k1 x + k3 x^3 + k5 x^5
--   origin    the reference of all weights, in units of log 2: scores are bounded, so that no row needs its own
--   reach     the largest |x| of which that is true
--   largest   while a row's weights sum to less, no x is so large that the polynomial leaves tanh
--   least     and where they sum to more, those of an x so far below 0 that it does are nothing beside them
--
-- Of degree 5 it is true near 0 and has a slope everywhere: what is beyond its reach on one side shows in the
-- sum, on the other side it vanishes as it does with tanh. Degree 7 would come back from below.
local BITS = 17 -- weights are followed from 2^-BITS to 2^BITS
local MOST_OFF = 7e-5 -- of an exponent: 5e-5 of the log-sum-exp, which may be off by 1e-4 (mathematics.md section 6)
local LEAST = 0.25 -- of a row's weights, were its origin 0

local function tanh(x) return 1 - 2 / (math.exp(2 * x) + 1) end

-- The coefficients of x, x^3, x^5 by tanh at the Chebyshev points of [-reach, reach]: divided differences of
-- tanh(x) / x in y = x^2.
local function odd_polynomial(reach)
  local y, f = {}, {}
  for i = 1, 3 do
    local x = reach * math.cos((2 * i - 1) * math.pi / 14)
    y[i], f[i] = x * x, tanh(x) / x
  end
  local first, second = (f[2] - f[1]) / (y[2] - y[1]), (f[3] - f[2]) / (y[3] - y[2])
  local bend = (second - first) / (y[3] - y[1])
  return f[1] - first * y[1] + bend * y[1] * y[2], first - bend * (y[1] + y[2]), bend
end

return function(factor)
  local most = factor / math.log(2) -- the largest exponent
  if most <= BITS or most > 100 then return nil end
  local reach = math.log((most + BITS) / (most - BITS)) / 2 -- where tanh(x) is BITS / most
  local a1, a3, a5 = odd_polynomial(reach)
  local off = 0
  for i = 1, 100 do
    local x = reach * i / 100
    off = math.max(off, most * math.abs(x * (a1 + x * x * (a3 + x * x * a5)) - tanh(x)))
  end
  if off > MOST_OFF or a5 <= 0 or 9 * a3 * a3 >= 20 * a1 * a5 then return nil end
  -- weights up to 2^16 where exponents leave room for the least ones
  local origin = math.floor(math.min(most - 16, 120 - most))
  local function number(x) return string.format("%.9ef", x) end
  -- spot "cap.limits"
  return { odd = { number(most * a1), number(most * a3), number(most * a5) }, origin = string.format("%d.0f", origin), reach = number(reach),
           largest = number(2.0 ^ (BITS - 1 - origin)), least = number(LEAST * 2.0 ^ -origin) }
end
