-- backward_switches.lua: the decisions of wgmma_backward, and what they gained (gen/expand/switches.lua says what the columns
-- are). Rows with when = false were tried and lost.
local measured, shape = run("measured.lua"), run("attention/wgmma/shape.lua")
local h200 = measured.h200
local is_wide = run("attention/wgmma/backward_wide.lua").is_for

local function always() return true end

return {
  { name = "starts_early",
    why = "A step starts beside the end of the one before, the first one too, and waits before it touches memory.",
    when = always,
    gain = {
      h200("2026-11-26", "d 64, causal, b 32, h 32, n 512", 0.4095, 0.4057),
      h200("2026-11-26", "d 128, full, b 32, h 16, n 512", 0.4506, 0.4472),
      h200("2026-11-26", "d 128, full, b 4, h 16, n 4096", 2.1658, 2.1649),
    } },

  { name = "stays",
    why = "A block stays on its multiprocessor and claims one job after the other: the first rows of the next one " ..
      "come while dK and dV leave.",
    possible = function(spec) return not is_wide(spec) end,
    when = function(_, plan, traits)
      return traits.mask.row_sees_a_range and (traits.score.is_s or traits.ds_follows_from_p and plan.block_q < plan.block_kv)
    end,
    gain = {
      h200("2026-11-26", "d 64, full, b 32, h 32, n 512", 0.5208, 0.4994),
      h200("2026-11-26", "d 64, full, b 4, h 32, n 4096", 2.4560, 2.3741),
      h200("2026-11-26", "d 64, causal, b 16, h 32, n 1024", 0.5626, 0.5337),
      h200("2026-11-26", "d 64, causal, b 1, h 32, n 16384", 5.1007, 5.0626),
      h200("2026-11-26", "d 128, full, b 16, h 16, n 1024", 0.7085, 0.6836),
      h200("2026-11-26", "d 128, full, b 4, h 16, n 4096", 2.2168, 2.1649),
      h200("2026-11-26", "d 128, causal, b 1, h 16, n 16384", 4.7087, 4.5241),
    } },

  { name = "queries_in_turns",
    why = "S and dP of a tile's rows are made in turns, of 32 rows at a time, where the score takes registers beside wide dK and dV.",
    possible = function(spec) return not is_wide(spec) end,
    when = function(spec, plan, traits)
      return shape.columns(spec.d) + shape.columns(spec.dv) > 192 and plan.block_q < plan.block_kv and not shape.score_is_light(traits)
    end },

  { name = "sections_of_heads",
    why = "Some heads share a section, of which the tiles of keys that most rows see come first: none of these ends last.",
    when = function(_, _, traits) return traits.mask.edge_count > 0 end,
    gain = {
      h200("2026-11-26", "d 64, causal, b 4, h 32, n 4096", 1.3492, 1.3278),
      h200("2026-11-26", "d 128, causal, b 16, h 16, n 1024", 0.4792, 0.4728),
      h200("2026-11-26", "d 128, causal, b 4, h 16, n 4096", 1.2459, 1.1930),
      h200("2026-11-26", "d 128, causal, b 1, h 16, n 16384", 4.6618, 4.5241),
    } },
}
