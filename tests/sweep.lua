-- sweep.lua: masks and scores of every make, for t_sweep: kernels have names that a text may or may not use, so
-- masks use none, one, and each two of q, k, b, h, nq and nk; scores do as well, under masks of three makes.
local inputs = {
  wid = "int", cap = "float", ids = "i32[b, 4096]", u = "f32[h] grad", rows = "f32[q]", keys = "bf16[k] grad",
  pairs = "f16[q, k] grad", rel = "f32[h, nq + nk - 1] grad",
}

-- A text, then the inputs that it uses.
local masks = {
  { "true" }, { "q < 9" }, { "k < 9" }, { "b == 0" }, { "h < 2" }, { "nq > 9" }, { "nk % 2 == 0" }, -- none, one
  { "q < k" }, { "q > b" }, { "q % 4 != h" }, { "q < nq - 3" }, { "q * 2 < nk" }, { "k > b" }, { "k >= h" },
  { "k + 5 < nq" }, { "k < nk - 7" }, { "b == h" }, { "b < nq" }, { "b + 1 < nk" }, { "h < nq" }, { "h + 2 < nk" },
  { "nq == nk" }, -- two
  { "k < wid", "wid" }, { "q < wid && k < wid", "wid" }, { "cap > 0.5", "cap" },
  { "cap > 0.5 ? k <= p : k < wid", "cap", "wid" }, { "nk > 5 && k <= p" }, { "k % 3 == 0 && k < 100" }, { "k >= 5" },
  { "q % 2 == 0" }, { "q == k" }, { "q != k" }, { "k > p" }, { "k >= p - 10" }, { "k <= p || k < 8" },
  { "k < 8 || k > nk - 8" }, { "hk == 0 || k <= p" }, { "abs(q - k) < 9" }, { "q / 16 == k / 16" },
  { "p / 64 == k / 64 && k <= p" }, { "k <= p && k % 2 == q % 2" }, { "ids[b, k] == 1", "ids" },
  { "ids[b, q] == ids[b, k]", "ids" }, { "k < ids[b, 0]", "ids" }, { "k >= ids[b, 0] && k < ids[b, 1]", "ids" }, { "min(q, 100) >= k" }, { "max(k, 7) <= p" },
  { "k * k <= q * 3" }, { "k < 0 - 1" }, { "p < 0 || k <= p" }, { "k >= nk - nq && k <= p" },
  { "given(k <= p, k <= p && ids[b, k] == 1)", "ids" }, { "float(k) <= float(p) * 0.5" }, { "floor(cap) < k", "cap" },
  { "causal" }, { "window(20, 3)" }, { "chunked(48)" },
}

local scores = {
  { "s" }, { "-s" }, { "s * s" }, { "abs(s)" }, { "1.0" }, { "float(k)" }, { "s + k" }, { "s + q" }, { "s + h" },
  { "s + nq" }, { "s + b" }, { "s + p * 0.5" }, { "s / nh" }, { "s * cap", "cap" }, { "s + cap", "cap" },
  { "s + 0.0 * cap", "cap" }, { "s + u[h]", "u" }, { "s + u[h] * q", "u" }, { "s * u[h] + u[h] * float(k - p)", "u" },
  { "s + rows[q]", "rows" }, { "s + keys[k]", "keys" }, { "s + pairs[q, k]", "pairs" }, { "s * pairs[q, k]", "pairs" },
  { "s + rel[h, k - q + nq - 1]", "rel" }, { "max(s, 0.0)" }, { "min(s, cap)", "cap" }, { "s > 0.0 ? s : 0.1 * s" },
  { "q == k ? s : s * 0.5" }, { "floor(s) + s" }, { "exp(s * 0.1)" }, { "sigmoid(s)" }, { "tanh(s) * 5.0" },
  { "log(abs(s) + 1.0)" }, { "sqrt(abs(s))" }, { "s / (1.0 + abs(s))" }, { "s / sqrt(1.0 + s * s)" },
  { "s - 30.0 * float(q - k)" }, { "softcap(20.0)" }, { "softcap(cap)", "cap" }, { "alibi" }, { "softcap(alibi, 30.0)" },
}

local list = {}
local function add(mask, score)
  local used
  for _, row in ipairs({ mask, score }) do
    for i = 2, #row do
      used = used or {}
      used[row[i]] = inputs[row[i]]
    end
  end
  list[#list + 1] = { pass = { "forward", "backward" }, head_dim = 32, mask = mask[1], score = score[1],
                      inputs = used }
end
for i, mask in ipairs(masks) do
  add(mask, { "s" })
  add(mask, { i % 2 == 0 and "alibi" or "softcap(20.0)" })
end
for i, score in ipairs(scores) do
  add({ i % 2 == 0 and "full" or "causal" }, score)
  add({ "k % 3 == h" }, score)
end
return list
