-- types.lua: the element types of a kind's tensors, as the global `types`: of attention types.q, k, v, p, o, dout, dq, dk, dv, and `operand`, of
-- what tile/tiles.cut multiplies; types.held, of rows in shared memory that no tensor core multiplies,
-- and types.stored, of rows that leave in 16 bits. A type:
--
--   name, bytes, ctype   "bf16", 2, "u16": how it is called, how large it is, what C knows of it
--   is_byte              it has one byte; nil: more
--   signs                the signs of the numbers in a word, as text
--   held                 the type of 16 bits that holds its numbers exactly where rows are no operands of tensor cores
--   k_step               columns that a step of a product on tensor cores takes
--   below                how far, in log 2, a row's reference lies below its largest score, whose weight is that power of 2; nil: it does not
--   pack, to_f32, from_f32   primitives: two float32 to a pair, one to float32 and back
--   pack_clipped         primitive: the same of two numbers of which those below 0 become 0
--   max_pair             primitive: the larger ones of two pairs
--   least                the least number above 0 of full precision, as text
--   lowest_bits          the bits of -inf, as text
--   has_range_of_f32     whether it has the exponents of float32, so that no weight leaves its range
local ROWS = {
  bf16 = { name = "bf16", bytes = 2, ctype = "u16", held = "bf16", signs = "0x80008000u", k_step = 16, pack = "pack_bf16", pack_clipped = "pack_clipped_bf16", max_pair = "max_pair_bf16", least = "1.17549435e-38f", to_f32 = "bf16_to_f32", from_f32 = "f32_to_bf16", lowest_bits = "0xff80", has_range_of_f32 = true },
  f16 = { name = "f16", bytes = 2, ctype = "u16", held = "f16", signs = "0x80008000u", k_step = 16, pack = "pack_f16", pack_clipped = "pack_clipped_f16", max_pair = "max_pair_f16", least = "6.1035156e-5f", to_f32 = "f16_to_f32", from_f32 = "f32_to_f16", lowest_bits = "0xfc00", has_range_of_f32 = false },
  e4m3 = { name = "e4m3", bytes = 1, is_byte = true, ctype = "u8", held = "bf16", signs = "0x80808080u", k_step = 32, below = "3.0f", pack = "pack_e4m3", to_f32 = "e4m3_to_f32", from_f32 = "f32_to_e4m3", has_range_of_f32 = false },
  f32 = { name = "f32", bytes = 4, ctype = "float", lowest_bits = "0xff800000u", has_range_of_f32 = true }, -- of rows and results, which no tensor core sees
}

local own = { k = spec.kv_elem, v = spec.kv_elem, o = spec.o_elem, dq = spec.dqkv_elem, dk = spec.dqkv_elem, dv = spec.dqkv_elem } -- others have the spec's
-- names: the kind's tensors (kinds.lua).
return function(names)
  local types = {}
  for _, name in ipairs(names) do types[name] = ROWS[own[name] or spec.elem] end
  types.held = ROWS[ROWS[spec.elem].held or spec.elem]
  types.stored = types.o and types.o.bytes == 2 and types.o or types.held
  return types
end
