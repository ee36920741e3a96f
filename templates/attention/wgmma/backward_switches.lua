-- backward_switches.lua: the decisions of wgmma_backward, and what they gained (gen/expand/switches.lua says what the columns
-- are). Rows with when = false were tried and lost.
local measured, shape = run("measured.lua"), run("attention/wgmma/shape.lua")
local h100, h200 = measured.h100, measured.h200
local wide, mma = run("attention/wgmma/backward_wide.lua"), run("attention/mma/mma.lua")
local is_wide = wide.is_for

local function is_ordered(spec) return spec.deterministic == "true" end
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
    when = function(_, _, traits) return traits.mask.row_sees_a_range end,
    gain = {
      h200("2026-11-26", "d 64, full, b 32, h 32, n 512", 0.5208, 0.4994),
      h200("2026-11-26", "d 64, full, b 4, h 32, n 4096", 2.4560, 2.3741),
      h200("2026-11-26", "d 64, causal, b 16, h 32, n 1024", 0.5626, 0.5337),
      h200("2026-11-26", "d 64, causal, b 1, h 32, n 16384", 5.1007, 5.0626),
      h200("2026-11-26", "d 128, full, b 16, h 16, n 1024", 0.7085, 0.6836),
      h200("2026-11-26", "d 128, full, b 4, h 16, n 4096", 2.2168, 2.1649),
      h200("2026-11-26", "d 128, causal, b 1, h 16, n 16384", 4.7087, 4.5241),
      h100("2026-11-26", "d 64, window(1023, 0), b 2, h 32, n 8192", 0.8814, 0.7982),
      h100("2026-11-26", "d 128, window(1023, 0), b 2, h 16, n 8192", 0.7916, 0.7201),
      h100("2026-11-26", "d 64, full, b 2, h 32, n 8192, softcap(30.0)", 7.2720, 7.2768),
      h100("2026-11-26", "d 64, full, b 2, h 32, n 8192, alibi", 5.2012, 5.2500),
    } },

  { name = "batches_side_by_side",
    why = "Blocks of the batches that share a dense gradient's elements follow each other, so that its sums stay in L2.",
    possible = function(_, _, traits)
      for _, x in ipairs(traits.input.grads) do
        if x.stored and not x.batched then return true end
      end
      return false
    end,
    when = always,
    gain = {
      h100("2026-11-26", "d 64, full, b 4, h 32, n 4096, a dense bias of all batches with its gradient", 12.312, 7.425),
      h100("2026-11-26", "d 128, full, b 4, h 16, n 4096, the same", 6.826, 4.506),
    } },

  { name = "brings_input",
    why = "Tiles of a dense input of the score come with Q.",
    possible = function(spec, _, traits) return not is_wide(spec) and traits.input.tiled ~= nil end,
    when = always,
    gain = {
      h100("2026-11-26", "d 64, full, b 4, h 32, n 4096, a dense bias of all batches with its gradient", 7.756, 7.425),
      h100("2026-11-26", "d 128, full, b 4, h 16, n 4096, the same", 5.114, 4.506),
    } },

  { name = "background",
    why = "Warps of the movers make what is kept of rows, and dQ of its sums, beside the products: passes before and behind " ..
      "take no time of their own. They bring O and take dQ in boxes of 16-bit rows.",
    -- The units of rows come in the order of heads; tiles of an input leave shared memory for those of narrow heads.
    possible = function(spec, _, traits, use)
      local is_large = use.brings_input and shape.blocks(spec.d) + shape.blocks(spec.dv) > 2
      local is_wide = types.o.name == "f32" or types.dq.name == "f32"
      return use.stays and not is_large and not is_wide and not use.batches_side_by_side and seq.is_dense
    end,
    when = always,
    gain = {
      h100("2026-11-26", "d 64, full, b 32, h 32, n 512", 0.5450, 0.5124),
      h100("2026-11-26", "d 64, full, b 16, h 32, n 1024", 0.8010, 0.7066),
      h100("2026-11-26", "d 64, full, b 4, h 32, n 4096", 2.4518, 2.3363),
      h100("2026-11-26", "d 64, full, b 1, h 32, n 16384", 9.8719, 10.0365),
      h100("2026-11-26", "d 64, causal, b 4, h 32, n 4096", 1.3788, 1.2776),
      h100("2026-11-26", "d 128, full, b 16, h 16, n 1024", 0.7482, 0.6684),
      h100("2026-11-26", "d 128, full, b 4, h 16, n 4096", 2.3524, 2.1939),
      h100("2026-11-26", "d 128, causal, b 32, h 16, n 512", 0.4674, 0.4522),
      h100("2026-11-26", "d 128, causal, b 4, h 16, n 4096", 1.2796, 1.2008),
      h100("2026-11-26", "d 128, causal, b 1, h 16, n 16384", 4.5197, 4.3708),
    } },

  { name = "queries_in_turns",
    why = "S and dP of a tile's rows are made in turns, of 32 rows at a time, where the score takes registers beside wide dK and dV.",
    possible = function(spec) return not is_wide(spec) end,
    when = function(spec, plan, traits)
      return shape.columns(spec.d) + shape.columns(spec.dv) > 192 and plan.block_q < plan.block_kv and not shape.score_is_light(traits)
    end },

  { name = "gradient_leaves_whole",
    why = "Where each pair has an element of its own in a dense input's gradient, it leaves as dS lies in shared memory.",
    possible = function(spec, _, traits)
      local is_one = false
      for _, x in ipairs(traits.input.grads) do is_one = is_one or x.stored and traits.input.is_ds(x) end
      return is_one and traits.ds_follows_from_p and not is_wide(spec)
    end,
    when = function(_, _, traits, use) return not use.queries_in_turns or #traits.input.grads == 1 end,
    gain = { measured.spills("d 128, full, beside a gradient by distance", 0, 4) } },

  { name = "takes_distances_once",
    why = "A lane takes a number of a table by distance once for all of its pairs of that distance, and before the scores are there.",
    possible = function(spec, _, traits) return seq.is_dense and not is_wide(spec) and not traits.pairs_are_looped and traits.input.read_by_distance() ~= nil end,
    when = function(_, _, _, use) return not use.queries_in_turns end,
    gain = {
      h100("2026-11-26", "d 64, full, b 2, h 32, n 8192, a table with its gradient", 8.670, 8.383),
      h100("2026-11-26", "d 128, full, b 2, h 16, n 8192, the same", 6.509, 6.697),
    } },

  { name = "sums_distances",
    why = "Of a gradient by distance, a warp adds up the pairs of a tile that have the same distance, before it adds to sums in memory.",
    possible = function(spec, _, traits)
      local is_one = false
      for _, x in ipairs(traits.input.grads) do is_one = is_one or x.kind == "indexed" and traits.input.is_by_distance(x) end
      return is_one and not is_wide(spec)
    end,
    -- in turns, an index that is clipped leaves no registers for it
    when = function(_, _, traits, use) return not use.queries_in_turns or traits.input.read_by_distance() ~= nil end,
    gain = {
      measured.spills("d 128, causal, a clipped distance, in turns", 0, 16),
      h100("2026-11-26", "d 64, full, b 2, h 32, n 8192, a table with its gradient", 28.231, 8.383),
      h100("2026-11-26", "d 128, full, b 2, h 16, n 8192, the same", 16.029, 6.697),
    } },

  { name = "sections_of_heads",
    why = "Some heads share a section, of which the tiles of keys that most rows see come first: none of these ends last.",
    possible = function() return seq.is_dense end,
    when = function(spec, _, traits) return traits.mask.edge_count > 0 or is_ordered(spec) end,
    gain = {
      h200("2026-11-26", "d 64, causal, b 4, h 32, n 4096", 1.3492, 1.3278),
      h200("2026-11-26", "d 128, causal, b 16, h 16, n 1024", 0.4792, 0.4728),
      h200("2026-11-26", "d 128, causal, b 4, h 16, n 4096", 1.2459, 1.1930),
      h200("2026-11-26", "d 128, causal, b 1, h 16, n 16384", 4.6618, 4.5241),
      h100("2026-11-26", "d 64, full, b 4, h 32, n 4096, deterministic", 3.7453, 3.1439),
      h100("2026-11-26", "d 128, full, b 8, h 16, n 2048, deterministic", 1.8020, 1.6565),
      h100("2026-11-26", "d 128, causal, b 8, h 16, n 2048, deterministic", 1.0020, 1.0750),
    } },

  { name = "keys_from_last",
    why = "A head's keys are claimed from the last ones on where rows see the keys before them: at each tile of rows the block " ..
      "that begins there adds first, and no block waits for another one's first rows.",
    possible = function(spec) return is_ordered(spec) end,
    when = function(_, _, traits) return traits.mask.edge_count == 1 and not traits.mask.first_key_moves end,
    gain = {
      h100("2026-11-26", "d 64, causal, b 4, h 32, n 4096", 4.3295, 1.7380),
      h100("2026-11-26", "d 128, causal, b 8, h 16, n 2048", 1.8190, 1.0750),
      h100("2026-11-26", "d 128, causal, b 2, h 16, n 8192", 7.1500, 3.0382),
      h100("2026-11-26", "d 128, full, b 8, h 16, n 2048", 1.6565, 1.6271),
    } },

  { name = "tells_late",
    why = "That a warp has added to dQ is told behind the first products of the next tile, which take as long as the adds do.",
    possible = function(spec) return is_ordered(spec) end,
    when = always,
    gain = {
      h100("2026-11-26", "d 64, full, b 4, h 32, n 4096", 3.3944, 3.1439),
      h100("2026-11-26", "d 64, causal, b 4, h 32, n 4096", 1.9521, 1.7380),
      h100("2026-11-26", "d 128, full, b 8, h 16, n 2048", 1.7992, 1.6565),
      h100("2026-11-26", "d 128, causal, b 2, h 16, n 8192", 3.0568, 3.0382),
    } },

  { name = "has_two_tiles_of_do",
    why = "dO of two tiles is in shared memory, where a cluster's blocks have room: the next one comes while the products read this one.",
    possible = function(spec, plan) return wide.is_for(spec) and not shape.is_wide and mma.bytes(wide.shared(spec, plan, { has_two_tiles_of_do = true })) <= mma.shared_limit() end,
    when = function() return seq.is_dense end,
    gain = {
      measured.spills("d 192/128, packed", 0, 8), measured.spills("d 192, packed", 0, 20),
      h200("2026-11-27", "d 160, full, b 4, h 12, n 4096", 3.608, 2.611),
      h200("2026-11-27", "d 160, causal, b 4, h 12, n 4096", 1.888, 1.426),
      h200("2026-11-27", "d 192/128, full, b 4, h 10, n 4096", 2.517, 2.143),
      h200("2026-11-27", "d 192/128, causal, b 4, h 10, n 4096", 1.416, 1.187),
    } },

  { name = "has_unequal_pieces_of_dq",
    why = "A cluster's block makes dQ of 64 columns, then of the 32 left, in place of 32 at a time: products read dS fewer times.",
    possible = function(spec) return wide.is_for(spec) and not shape.is_wide and wide.halves_a_block(spec) end,
    when = function() return false end }, -- not measured yet
}
