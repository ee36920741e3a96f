-- records.lua: what the movers of wgmma_forward say of a tile of keys that slices show a block's rows: a record beside its K, of the slice,
-- k0 and a word `told`, which tells of the tile behind it too, so that a warpgroup knows what to do with that one before it is there. A
-- record is read behind the products too, when the tile's K may have left its slot: there are twice as many as slots, so that the next
-- one in its place comes when all have gone on.
local records = { BYTES = 48, slice = 0, k0 = 32, told = 36 }

-- spot "wgmma.records.place"
function records.at(number) return string.format("sm + SM_RECORDS + (u32)(%s %% (2 * STAGES) * %d)", number, records.BYTES) end

-- Tests of `told` by warpgroup `group`: all of its rows see all of the tile; all see all of the next one; none sees a pair of the next one;
-- there is no next one.
records.all, records.next_all = "told >> group & 1", "told >> (8 + group) & 1"
records.next_none, records.is_last = "told >> (16 + group) & 1", "told >> 24 != 0"
function records.word(all, next_all, next_none, has_next)
  return string.format("%s | %s << 8 | %s << 16 | (u32)!%s << 24", all, next_all, next_none, has_next)
end

return records
