-- records.lua: what the movers of wgmma_forward say of a tile of keys that slices show a block's rows: a record beside its K, of the slice,
-- k0 and a word `told`. A record is read behind the products too, when the tile's K may have left its slot: there are twice as many
-- as slots, so that the next one in its place comes when all have gone on.
local records = { BYTES = 48, k0 = 32, told = 36 } -- places of words behind the slice

-- spot "wgmma.records.place"
function records.at(number) return string.format("sm + SM_RECORDS + (u32)(%s %% (2 * STAGES) * %d)", number, records.BYTES) end

-- Tests of `told` by warpgroup `group`: none of its rows sees a pair of the tile; all see all; no tile comes behind.
records.none, records.all, records.is_last = "told >> group & 1", "told >> (8 + group) & 1", "told >> 16 != 0"
function records.word(none, all, is_last) return string.format("%s | %s << 8 | (u32)(%s) << 16", none, all, is_last) end

return records
