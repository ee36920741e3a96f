-- backward_switches.lua: the decisions of mma_backward and what they gained. gen/expand/switches.lua says
-- what the columns are.
local mma, measured = run("attention/mma/mma.lua"), run("measured.lua")
local h200, spills = measured.h200, measured.spills

local function always() return true end

return {
  { name = "starts_early",
    why = "A step starts beside the end of the one before, the first one too, and waits before " ..
      "it touches memory.",
    possible = mma.can_start_early,
    when = always,
    gain = {
      h200("2026-11-22", "d 64, causal, b 4, h 16, n 512", 58.4, 54.5, "us"),
      h200("2026-11-22", "d 128, causal, b 4, h 16, n 512", 103.2, 98.4, "us"),
      h200("2026-11-23", "d 64, b 4, h 32, n 512, the first step too", 91.0, 87.9, "us"),
      h200("2026-11-23", "d 64, window 1023, n 8192, the first step too", 1.268, 1.256),
    } },

  { name = "batches_side_by_side",
    why = "Blocks of the batches that share a dense gradient's elements follow each other, so " ..
      "that its sums stay in L2.",
    possible = function(spec, plan, traits)
      for _, x in ipairs(traits.input.grads) do
        if x.stored and not x.batched then return true end
      end
      return false
    end,
    when = always },

  { name = "heads_side_by_side",
    why = "Heads whose keys see few rows at a time follow each other.",
    possible = function(spec, plan, traits, use) return not use.batches_side_by_side and not seq.is_packed("k") end,
    when = function(spec, plan, traits) return traits.mask.first_key_moves end,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 1.290, 1.268),
      h200("2026-11-23", "d 128, window 1023, n 8192", 1.370, 1.348),
    } },

  { name = "some_short_tiles_first",
    why = "Half of the tiles of the first batch that few rows see start first, so that the last " ..
      "blocks to start are not the ones that end last.",
    possible = function(spec, plan, traits, use)
      return use.heads_side_by_side and traits.mask.first_key_moves and seq.is_dense
    end,
    when = always,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 1.267, 1.246),
      h200("2026-11-23", "d 64, window 1023, n 16384, b 1", 1.308, 1.283),
      h200("2026-11-23", "d 128, window 1023, n 8192, a multiprocessor a block", 1.353, 1.352),
    } },

  { name = "all_short_tiles_first",
    why = "All tiles of the first batch that few rows see start first, not half of them.",
    when = false,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 1.246, 1.243),
      h200("2026-11-23", "d 64, window 1023, n 16384, b 1", 1.283, 1.300),
      h200("2026-11-23", "d 128, window 1023, n 8192", 1.352, 1.331),
      h200("2026-11-23", "d 128, window 1023, n 16384, b 1", nil, 1.399),
    } },

  { name = "short_tiles_of_all_batches_first",
    why = "Half of the tiles that few rows see start first in every batch, not in the first one " ..
      "alone.",
    when = false,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 1.246, 1.248),
      h200("2026-11-23", "d 64, window 1023, n 16384, b 1", 1.283, 1.285),
      h200("2026-11-23", "d 128, window 1023, n 8192", 1.352, 1.353),
      h200("2026-11-23", "d 128, window 1023, n 16384, b 1", nil, 1.377),
    } },

  { name = "tiles_in_halves",
    why = "A warp has a tile of 16 keys in each half of a block's keys, so that all warps take " ..
      "half the work of rows that see one half alone; a causal mask has few such rows.",
    -- A deterministic kernel has the bits of one that skips no tile, whose tanh may be that of small numbers;
    -- gradients of inputs take dS of all keys, and loops over a tiled input's pairs their keys in a row.
    possible = function(spec, plan, traits)
      return traits.mask.row_sees_a_range and spec.deterministic ~= "true" and mma.division(plan).warp_kv == 32 and
        not traits.pairs_are_looped and not traits.input.tiled and #traits.input.grads == 0
    end,
    when = function(spec, plan, traits)
      local score = traits.score
      return traits.mask.first_key_moves and plan.stages > 1 and
        (score.is_s or score.tanhs_are_of_scaled_s and #traits.input.names == 0)
    end,
    gain = {
      h200("2026-11-25", "d 64, window 1023, n 8192", 1.245, 1.219),
      h200("2026-11-25", "d 64, window 255, n 8192", 0.573, 0.532),
      h200("2026-11-25", "d 128, window 1023, n 8192", 1.349, 1.337),
      h200("2026-11-25", "d 64, causal, n 8192", 4.416, 4.491),
      spills("a window, terms beside s or one stage", 0, 40),
    } },

  { name = "small_tanh_in_cut_tiles",
    why = "tanh is a polynomial in tiles of small numbers that are not whole too. Under a mask " ..
      "it must be: a kernel that skips no tile takes none as whole, and gives the same " ..
      "bits.",
    possible = function(spec, plan, traits) return traits.score.tanhs_are_of_scaled_s and not traits.pairs_are_looped end,
    when = function(spec, plan, traits)
      return traits.mask.tile("q0", "q0 + BLOCK_Q", "k0", "k0 + BLOCK_KV").always ~= "1"
    end,
    gain = { spills("no mask, tanh", 0, 64) } },

  { name = "warps_test_whole_tiles",
    why = "Each warp tests for its own 32 rows and keys whether all of a tile is seen.",
    when = false,
    gain = {
      h200("2026-11-25", "d 64, window 1023, n 8192", 1.237, 1.239),
      h200("2026-11-25", "d 64, causal, n 8192", 4.41, 4.44),
    } },

  { name = "warps_leave_queries",
    why = "Warps leave the products of queries that see none of their keys, but a tile waits " ..
      "for its last warp.",
    when = false,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 1.256, 1.263),
      h200("2026-11-23", "d 64, causal, n 8192", 4.42, 4.54),
      h200("2026-11-25", "d 64, window 1023, n 8192", 1.237, 1.249),
      h200("2026-11-25", "d 64, causal, n 8192", 4.41, 4.56),
    } },

  { name = "dq_by_last_block",
    why = "The last block that adds to some rows of dQ makes them, in parts of 256 or 512 rows, " ..
      "not a step of its own.",
    when = false,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192, parts of 256", 1.256, 1.278),
      h200("2026-11-23", "d 64, window 1023, n 8192, parts of 512", 1.256, 1.263),
      h200("2026-11-23", "d 64, causal, n 1024", 0.763, 0.778),
      h200("2026-11-23", "d 64, causal, n 8192", 4.41, 4.56),
    } },

  { name = "dq_by_bulk_adds",
    why = "Sums of dQ go through shared memory to adds of whole tiles. Without any sums the " ..
      "full mask of d 128 would take 7.91.",
    when = false,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 1.256, 1.287),
      h200("2026-11-23", "d 128, n 8192", 8.97, 9.63),
    } },

  { name = "small_blocks",
    why = "Blocks have two warps and 64 keys, four of them a multiprocessor, and so more sums " ..
      "of dQ.",
    when = false,
    gain = { h200("2026-11-23", "d 64, window 1023, n 8192", 1.256, 1.43) } },

  { name = "last_sums_first",
    why = "The step that makes dQ of its sums takes those first that were added to last.",
    when = false,
    gain = { h200("2026-11-23", "d 64, window 1023, n 8192", 1.266, 1.264) } },

  { name = "several_rows_a_thread",
    why = "A thread of the first and the last step has two or four rows, which is no faster.",
    when = false },

  { name = "heads_from_the_last",
    why = "The first and the last step take heads and batches from the last to the first, for " ..
      "sums of dQ that L2 has.",
    when = false,
    gain = {
      h200("2026-11-25", "d 64, window 1023, n 8192", 1.2443, 1.2439),
      h200("2026-11-25", "d 64, causal, n 8192", 4.412, 4.406),
      h200("2026-11-25", "d 128, causal, n 1024", 0.826, 0.822),
    } },

  { name = "products_by_4_steps",
    why = "Four steps of a product stand in a straight line, not two.",
    when = false,
    gain = { spills("d 64", 0, 8), spills("d 256", 0, 8) } },
}
