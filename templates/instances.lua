-- instances.lua: primitives whose text follows from numbers of the caller. A template declares one,
--   instance { "wgmma", name = "scores", n = 128, k = 64, a = ..., b = ... }
-- and calls it by its name. Here each kind is checked and completed, for both targets; the bodies are
-- functions of <target>/*.cut. Returns by kind a function of the description that gives the parameters.
--
-- scalars = true: registers are named, not in arrays: an argument s stands for s0, s1, ... (on the host
-- device for the array s; tile/registers.lua writes either). NVRTC compiles a forward
-- kernel of d 128 in three quarters of the time then, to the same code.
local kinds = {}

-- "d += a b" or "d = a b" by a warpgroup, all k steps at once: a group of its own, which wgmma_wait_*
-- counts. d: n / 2 floats, row and columns as PTX's wgmma has them. Until the wait d and, where it lies
-- in registers, a must not be touched.
--   n, k       columns of d, a multiple of 8; the products in a sum, a multiple of 16, of e4m3 of 32
--   a, b       operands in shared memory; no a: registers, 4 a step of 32 bytes in k
--   init       "zero" (d = a b), "sum", or "either": the last argument, sum, says whether d counts
--   type       "bf16", "f16", "e4m3", whose operands are k-major; none: the spec's
-- An operand is tiles of rows of `swizzle` bytes (128, 64, 32), 8 rows to a pattern:
--   major      "k": a row has k side by side; "mn": a row is of one k
--   block      bytes from one row's width to the next, where there are more than one
--   stride     bytes from 8 rows to the next 8; none: 8 * swizzle
local SWIZZLES = { [128] = 1, [64] = 2, [32] = 3 }

-- level: of the template's line, seen from the caller.
local function check(good, level, ...)
  if not good then error(string.format(...), level + 1) end
end

-- The high word of the operand's descriptor, and what each step of 32 bytes in k adds to the low one. size: bytes of a number.
local function complete(o, extent, k, size, what)
  check(o, 4, "%s is missing", what)
  local code = SWIZZLES[o.swizzle]
  check(code, 4, "%s: swizzle must be 128, 64 or 32", what)
  check(o.major == "k" or o.major == "mn", 4, "%s: major must be \"k\" or \"mn\"", what)
  check(size == 2 or o.major == "k", 4, "%s: of e4m3 major must be \"k\"", what)
  local width, stride = o.swizzle // size, o.stride or 8 * o.swizzle
  check(o.block or (o.major == "k" and k or extent) <= width, 4, "%s: block is missing", what)
  o.high = stride // 16 | code << 30
  o.step = {}
  for at = 0, k - 1, 32 // size do
    local bytes = o.major == "mn" and at // 8 * stride or at // width * (o.block or 0) + at % width * size
    -- the leading offset, to the next row's width of m or n; with k side by side none is looked at
    o.step[#o.step + 1] = bytes // 16 + ((o.major == "mn" and o.block or 0) // 16 << 16)
  end
end

function kinds.wgmma(p)
  p.type, p.init = p.type or types.q.name, p.init or "zero"
  check(p.n % 8 == 0 and p.n > 0 and p.n <= 256, 3, "%s: n must be a multiple of 8 up to 256", p.name)
  local size = p.type == "e4m3" and 1 or 2
  p.k_step = 32 // size
  check(p.k % p.k_step == 0 and p.k > 0 and p.k <= 16 * p.k_step, 3, "%s: k must be a multiple of %d up to %d", p.name, p.k_step,
        16 * p.k_step)
  check(p.init == "zero" or p.init == "sum" or p.init == "either", 3, "%s: init is none", p.name)
  if p.a then complete(p.a, 64, p.k, size, p.name .. ": a") end
  complete(p.b, p.n, p.k, size, p.name .. ": b")
  return string.format("float *d, %s, u32 b%s", p.a and "u32 a" or "const u32 *a", p.init == "either" and ", int sum" or "")
end

-- wgmma_wait_<pending>, and the compiler may move nothing across it that touches the registers
-- `floats` = { 64, 32 }: of two arrays. Without pending there is no wait: a warp alone may come to it,
-- which the other three of its warpgroup would have to follow to a wait.
function kinds.wgmma_wait(p)
  local list = {}
  for i = 1, #p.floats do list[i] = "float *d" .. i end
  return table.concat(list, ", ")
end

return kinds
