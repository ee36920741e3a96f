-- records.lua: what the movers of wgmma_forward say of a tile of keys that slices show a block's rows: a record beside its K, of the slice,
-- k0, the head of its keys and a word `told`. A record is read behind the products too, when the tile's K may have left its slot:
-- there are twice as many as slots, so that the next one in its place comes when all have gone on, or more, where the warp that walks
-- goes ahead of the one that loads, which says then that a record's place is empty: it is when K of the tile behind it has left.
local records = { BYTES = 48, k0 = 32, told = 36, g = 40 } -- places of words behind the slice

-- Records of a block. The walk may be as many tiles ahead of the load of K as there are more than slots, but one.
local AHEAD = 8
function records.count(stages, walked_ahead) return walked_ahead and math.max(2 * stages, AHEAD) or 2 * stages end

-- spot "wgmma.records.place"
function records.at(number) return string.format("sm + SM_RECORDS + (u32)(%s %% RECORDS * %d)", number, records.BYTES) end

-- Tests of `told` by warpgroup `group`: none of its rows sees a pair of the tile; all see all; no tile comes behind.
records.none, records.all, records.is_last = "told >> group & 1", "told >> (8 + group) & 1", "told >> 16 != 0"
function records.seen(none, all) return string.format("%s | %s << 8", none, all) end
function records.last(is_last) return string.format("(u32)%s << 16", is_last) end

return records
