-- records.lua: what the movers of wgmma_forward say of a tile of keys that slices show a block's rows: a record beside its K, of the slice,
-- k0, the head of its keys, a word `own` of who sees it, and a word `told` of who sees the tile behind it, so that a warpgroup knows
-- before that tile is there. A record is read behind the products too, when the tile's K may have left its slot: its place is empty
-- when K of the tile behind it has left, and there are more than slots, but one, for the walk to go ahead of the loads.
local records = { BYTES = 48, k0 = 32, told = 36, g = 40, own = 44 } -- places of words behind the slice

local AHEAD = 8
function records.count(stages) return math.max(stages + 2, AHEAD) end

-- spot "wgmma.records.place"
function records.at(number) return string.format("sm + SM_RECORDS + (u32)(%s %% RECORDS * %d)", number, records.BYTES) end

-- Tests of `told` and `own` by warpgroup `group`: none of its rows sees a pair of the tile; all see all; no tile comes behind.
records.none, records.all, records.is_last = "told >> group & 1", "told >> (8 + group) & 1", "told >> 16 != 0"
records.own_all = "own >> (8 + group) & 1"
function records.seen(none, all) return string.format("%s | %s << 8", none, all) end
function records.last(is_last) return string.format("(u32)%s << 16", is_last) end

return records
