-- serving.lua: shapes of sequences of many lengths: packed prompts, and decode over caches and pages.
--
-- A shape with pages is for kv_layout=paged, one with tokens for packed queries and keys; where a file
-- leaves tokens and pages out, packed sequences are as long as each other and the pool has pages for
-- all keys. Where it says fewer, nq or nk is the longest sequence and the others are spread below it,
-- evenly by their logarithms (runtime/cli/lengths.h).
local shapes = {}

local function add(shape, when)
  shape.when = when
  shapes[#shapes + 1] = shape
end

-- Packed prompts, 32768 tokens, 2048 columns of heads: of 64 to 8192 tokens each, and all of 4096.
for _, d in ipairs { 128, 64 } do
  local h = 2048 // d
  for _, group in ipairs { 1, 4 } do
    local function is_width(s) return s.head_dim == d end
    local function is_packed(s) return is_width(s) and s.q_layout == "packed" end
    add({ b = 18, h = h, hk = h // group, nq = 8192, nk = 8192, tokens_q = 32768, tokens_k = 32768 }, is_width)
    add({ b = 8, h = h, hk = h // group, nq = 4096, nk = 4096 }, is_packed)
  end
end

-- A step of decode, of 32 heads over 8 and of 64 over 8 if not said otherwise: few rows of each sequence
-- against all of its keys, in caches (no pages) and in pages.
local function add_decode(d, h, b, rows, keys, hk, pages)
  for _, page in ipairs(pages or { 0, 16, 64, 256 }) do
    add({ b = b, h = h, hk = hk or 8, nq = rows, nk = keys, page = page }, function(s)
      return s.head_dim == d and s.pass == "forward" and s.q_layout == "dense" and s.kv_layout ~= "packed"
    end)
  end
end

-- 64 sequences of 100 to 16000 keys, and pages for them however they end.
local function add_mixture(d, h)
  local b, longest, keys = 64, 16000, 205400
  for _, page in ipairs { 16, 64, 256 } do
    add({ b = b, h = h, hk = 8, nq = 1, nk = longest, page = page, pages = (keys + b * (page - 1)) // page },
      function(s) return s.head_dim == d and s.q_layout == "dense" end)
  end
end

for _, heads in ipairs { { 128, 32 }, { 64, 64 } } do
  local d, h = heads[1], heads[2]
  add_decode(d, h, 16, 1, 8192)
  add_decode(d, h, 1, 1, 8192)
  add_mixture(d, h)
  add_decode(d, h, 64, 1, 2048)
  add_decode(d, h, 1, 1, 131072)
  add_decode(d, h, 1, 1, 512)
  add_decode(d, h, 4, 16, 32768) -- some drafts at a time
  for _, hk in ipairs { h, h // 4, 1 } do -- heads that share nothing, those of four, and of all, which share keys
    add_decode(d, h, 4, 1, 3000, hk, { 0, 64 })
    add_decode(d, h, 48, 1, 1000, hk, { 0, 64 })
    add_decode(d, h, 12, 4, 6000, hk, { 0, 64 })
  end
end

-- New rows of prompts against the pages that they are in, 512 of each.
for _, page in ipairs { 16, 64 } do
  add({ b = 8, h = 32, hk = 8, nq = 512, nk = 8192, page = page },
    function(s) return s.head_dim == 128 and s.q_layout == "packed" end)
end

-- kernel=append: a prompt of each of 4 sequences; a row of each of 64.
for _, page in ipairs { 16, 0 } do
  add { b = 4, h = 32, hk = 8, nq = 4096, nk = 8192, positions = 8192, page = page }
  add { b = 64, h = 32, hk = 8, nq = 1, nk = 4096, positions = 4096, page = page }
end

return shapes
