-- records.lua: what the movers of wgmma_forward say of a tile of keys that slices show a block's rows: a record beside its K, of the slice,
-- k0, the head of its keys, a word `own` of who sees it, and a word `told` of who sees the tile behind it, so that a warpgroup knows
-- before that tile is there. A record is read behind the products too, when the tile's K may have left its slot: its place is empty
-- when K of the tile behind it has left, and there are more than slots, but one, for the walk to go ahead of the loads.
local records = { BYTES = 48, k0 = 32, told = 36, g = 40, own = 44 } -- places of words behind the slice

local AHEAD = 8
function records.count(stages) return math.max(stages + 2, AHEAD) end

-- spot "wgmma.records.place"
function records.at(number) return string.format("sm + SM_RECORDS + (u32)(%s) %% RECORDS * %d", number, records.BYTES) end

-- Of `told` and `own` a bit is of a warpgroup's rows: none sees a pair of the tile; all see all. Those of `told` that say that no tile
-- comes behind are as many for each. Tests of a word that has been shifted by the warpgroup's number, of the last ones of any word.
function records.seen(none, all) return string.format("%s | %s << 8", none, all) end
function records.last(is_last) return string.format("(%s ? 255u << 16 : 0)", is_last) end
function records.of_group(place) return string.format("lds_u32(record + %d) >> group", place) end
records.none, records.all, records.own_all, records.is_last = "told & 1", "told & 1 << 8", "own & 1 << 8", "told & 1 << 20"

return records
