-- llm.lua: shapes of language models, those first that a budget should be spent on.
--
-- Training and prefill: 16384 tokens in rows of 512 to 16384, 2048 columns of heads, as in the
-- tables of speed.md; then heads that share keys 4 to 1. Decode: few rows against many keys,
-- 32 heads over 8, for forward passes alone; one row sees all keys under the causal mask too, which the
-- full one's plans then compute.
local shapes = {}

local function add_lengths(lengths, group)
  for _, n in ipairs(lengths) do
    for _, d in ipairs { 64, 96, 128, 192, 256 } do
      local h = d % 64 == 0 and 2048 // d // 4 * 4 or 16 -- also a multiple of the group
      shapes[#shapes + 1] = { b = 16384 // n, h = h, hk = h // group, nq = n, nk = n,
        when = function(s) return s.head_dim == d end }
    end
  end
end

local function add_decode(b, rows, keys)
  shapes[#shapes + 1] = { b = b, h = 32, hk = 8, nq = rows, nk = keys,
    when = function(s) return s.pass == "forward" and (s.mask ~= "full" or rows == 1) end }
end

add_lengths({ 4096, 1024, 16384, 8192, 2048, 512 }, 1)
add_decode(16, 1, 8192)
add_decode(1, 1, 8192)
add_decode(64, 1, 2048)
add_decode(1, 256, 8192) -- a part of a prompt
add_lengths({ 4096, 1024 }, 4)
add_decode(1, 1, 131072)
add_decode(4, 16, 32768) -- some drafts at a time
return shapes
