-- column_bits.lua: a number with a bit for each column of a tile of keys that a lane of an accumulator holds, two in eight.
local wide = plan.block_kv > 128
return { type = wide and "u64" or "u32", one = wide and "1ull" or "1u", all = wide and "~0ull" or "0xffffffffu", count = wide and 64 or 32 }
