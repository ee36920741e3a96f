-- mma_forward_switches.lua: the decisions of mma_forward, and what they gained (gen/switches.lua says what the columns are).
return {
  { name = "begin_at_mask",
    why = "Tiles of keys begin at the first key that a row of the block may see, not at a multiple of their size, so that fewer tiles are cut by the mask.",
    possible = function(spec, plan, traits) return formula.first_key ~= nil and not traits.input.tiled and plan.stages < 3 end,
    when = function() return true end,
    gain = {
      { shape = "d 64, window 1023, n 8192, 96 keys", without = 0.473, with = 0.453, unit = "ms", card = "H200", date = "2026-11-23" },
    } },
}
