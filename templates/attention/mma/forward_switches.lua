-- forward_switches.lua: the decisions of mma_forward and what they gained. gen/expand/switches.lua says
-- what the columns are.
local mma, measured = run("attention/mma/mma.lua"), run("measured.lua")
local h200, spills = measured.h200, measured.spills

local function always() return true end

return {
  { name = "starts_early",
    why = "A launch starts beside the end of the one before, and waits before it touches memory.",
    possible = mma.can_start_early,
    when = always },

  { name = "batches_side_by_side",
    why = "Blocks of the batches that share a tile of an input follow each other, so that it " ..
      "stays in L2.",
    possible = function(spec, plan, traits)
      return traits.input.tiled ~= nil and not traits.input.tiled.batched and not seq.is_packed("q")
    end,
    when = always },

  { name = "heads_side_by_side",
    why = "Heads whose rows see little of K at a time follow each other, so that their first " ..
      "rows, which see least, come last.",
    possible = function(spec, plan, traits, use) return not use.batches_side_by_side and not seq.is_packed("q") end,
    when = function(spec, plan, traits) return traits.mask.first_key_moves end,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 0.485, 0.473),
      h200("2026-11-23", "d 128, window 1023, n 8192", 0.432, 0.415),
    } },

  { name = "short_rows_first",
    why = "Rows of the first batch that see few keys start first, so that the last blocks to " ..
      "start are not the ones that end last.",
    possible = function(spec, plan, traits, use) return use.heads_side_by_side and traits.mask.first_key_moves and seq.is_dense end,
    when = function(spec, plan, traits) return traits.score.is_s end,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 0.454, 0.447),
      h200("2026-11-23", "d 64, window 1023, n 16384, b 1", 0.469, 0.466),
      h200("2026-11-23", "d 128, window 1023, n 8192", 0.418, 0.409),
      h200("2026-11-23", "d 128, window 1023, n 16384, b 1", 0.442, 0.437),
      spills("d 128, window 1023, ALiBi", 0, 224),
    } },

  { name = "short_rows_of_all_batches_first",
    why = "Rows that see few keys start first in every batch, not in the first one alone.",
    when = false,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192", 0.447, 0.452),
      h200("2026-11-23", "d 128, window 1023, n 8192", 0.409, 0.427),
    } },

  { name = "first_row_is_shuffled",
    why = "A block's first row passes a shuffle, so that ptxas does not take the sum that gives " ..
      "it apart and hold its terms.",
    possible = function(spec, plan, traits, use) return use.short_rows_first end,
    when = function(spec) return spec.dv > 64 end,
    gain = {
      spills("d 128, window 1023", 212, 0),
    } },

  { name = "begin_at_mask",
    why = "Tiles of keys begin at the first key that a row of the block may see, not at a " ..
      "multiple of their size, so that fewer tiles are cut by the mask.",
    possible = function(spec, plan, traits)
      -- what dropout keeps has bits for tiles of 8 keys from the sequence's first one on
      local lies_in_a_block = traits.descale ~= nil and traits.descale.is_of_blocks
      return formula.first_key ~= nil and not traits.input.tiled and plan.stages < 3 and not traits.norm.drop and not lies_in_a_block
    end,
    when = always,
    gain = {
      h200("2026-11-23", "d 64, window 1023, n 8192, 96 keys", 0.473, 0.453),
    } },

  { name = "warps_leave_tiles",
    why = "A warp leaves the products of a tile that only other warps of its block see, where " ..
      "another warp shares its scheduler.",
    possible = function(spec, plan, traits) return traits.mask.tile("q0", "q1", "k0", "k1").never ~= "0" end,
    when = function(spec, plan, traits) return plan.warps > 4 and traits.score.is_s end,
    gain = {
      h200("2026-11-22", "d 256, causal, n 1024", 0.305, 0.290),
      h200("2026-11-22", "d 256, causal, n 4096", 1.019, 0.994),
      h200("2026-11-22", "d 256, causal, n 16384", 3.43, 3.34),
      h200("2026-11-22", "d 128, causal, n 1024, 4 warps", 0.246, 0.251),
      spills("d 256, causal, a score", 0, 44),
    } },

  { name = "loads_next_k_early",
    why = "With one stage the copy of the next tile of K starts before the softmax, as soon as " ..
      "K has been read; warps of 32 rows have no registers left for its addresses.",
    possible = function(spec, plan, traits) return plan.stages == 1 and not traits.input.tiled end,
    when = function(spec, plan) return plan.block_q // plan.warps <= 16 end,
    gain = {
      spills("d 128, warps of 32 rows", 0, 64),
    } },

  { name = "one_bound",
    why = "Where all rows see the keys below one bound, a tile is tested once against the " ..
      "lesser of it and the number of keys.",
    possible = function() return formula.always_end ~= nil end,
    when = always,
    gain = {
      spills("d 128, causal_top_left, sm_90a", 196, 0),
    } },

  { name = "hides_by_columns",
    why = "Where a row sees one range of keys, a bit of each key says what the mask leaves of " ..
      "S: cheaper than two tests a pair, dearer than one.",
    possible = function(spec, plan, traits)
      return traits.score.is_s and traits.mask.row_sees_a_range and not traits.mask.reads_memory and plan.block_kv <= 128
    end,
    when = function(spec, plan, traits) return traits.mask.edge_count > 1 and plan.block_kv > 64 end,
    gain = {
      h200("2026-11-22", "d 64, window 1023, n 8192, 96 keys", 0.502, 0.487),
      h200("2026-11-22", "d 64, causal, n 8192, 96 keys", 1.607, 1.628),
      spills("d 128, a window, 64 keys", 0, 256),
    } },

  { name = "warps_test_whole_tiles",
    why = "Each warp tests for its own rows whether all of a tile is seen, and so masks fewer " ..
      "tiles, but all warps wait for the slowest one in each tile.",
    when = false,
    gain = {
      h200("2026-11-25", "d 64, window 1023, n 8192", 0.4510, 0.4490),
      h200("2026-11-25", "d 64, causal, n 8192", 1.620, 1.631),
    } },

  { name = "capped_exponents",
    why = "The product becomes the exponents of a capped score in one polynomial, and the cap " ..
      "bounds them, so that rows need no maximum.",
    possible = function(spec, plan, traits) return traits.score.cap ~= nil end,
    when = always,
    gain = {
      h200("2026-11-23", "d 64, softcap(30.0), n 4096", 2.43, 1.83),
      h200("2026-11-23", "d 64, causal, softcap(30.0), n 4096", 1.32, 1.03),
      h200("2026-11-23", "d 128, softcap(30.0), n 4096", 1.94, 1.61),
      h200("2026-11-23", "d 128, causal, softcap(30.0), n 4096", 1.16, 0.99),
    } },

  { name = "small_tanh_in_cut_tiles",
    why = "tanh is a polynomial in tiles of small numbers that are not whole too. Under a mask " ..
      "it must be: a kernel that skips no tile takes none as whole, and gives the same " ..
      "bits.",
    possible = function(spec, plan, traits)
      return traits.score.cap ~= nil or traits.score.tanhs_are_of_scaled_s and not traits.pairs_are_looped
    end,
    when = function(spec, plan, traits)
      return traits.mask.tile("q0", "q0 + BLOCK_Q", "k0", "k0 + BLOCK_KV").always ~= "1"
    end,
    gain = {
      spills("d 64, no mask, tanh, 96 keys", 0, 32),
    } },

  { name = "tile_sums_apart",
    why = "Products of e4m3 add up a tile of keys from 0, and float32 registers the tiles: tensor " ..
      "cores keep 13 to 14 bits of a sum, which breaks long contexts.",
    possible = function() return types.p.is_byte == true end,
    when = always },

  { name = "products_by_2_steps",
    why = "Two steps of a product stand in a straight line, not four.",
    when = false,
    gain = { h200("2026-11-20", "d 128", 100, 104, "% of the time") } },

  { name = "products_by_8_steps",
    why = "Eight steps of a product stand in a straight line, not four.",
    when = false,
    gain = { spills("d 128", 0, 32) } },
}
