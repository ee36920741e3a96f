-- forward_switches.lua: the decisions of wgmma_forward, and what they gained (gen/expand/switches.lua says what the columns
-- are). Rows with when = false were tried and lost.
local shape, measured = run("attention/wgmma/shape.lua"), run("measured.lua")
local columns, has_parts = shape.columns, shape.has_parts

-- Measurements of one day on an H200, each { shape, without, with }.
local function h200(date, unit, rows)
  local gain = {}
  for i, row in ipairs(rows) do gain[i] = measured.h200(date, row[1], row[2], row[3], unit) end
  return gain
end
-- Bytes that spill with NVRTC 13.0, the same way.
local function spilled(rows)
  local gain = {}
  for i, row in ipairs(rows) do gain[i] = measured.spills(row[1], row[2], row[3]) end
  return gain
end
local function all(...)
  local gain = {}
  for _, list in ipairs { ... } do table.move(list, 1, #list, #gain + 1, gain) end
  return gain
end

local function groups(plan) return plan.block_q // 64 end
-- "1", "0" or a test: whether a warpgroup's rows see all of a tile.
local function rows_see_all(traits) return traits.mask.tile("q0", "q1", "k0", "k1", "h").always end
local function knows_range(traits) return (traits.mask.seen_by_all("q", "q1")) ~= nil end
local function is_capped(traits) return traits.score.cap_of_ranges ~= nil end

local function takes_turns(_, plan) return plan.stages < 3 end
local function first_takes_turn(spec, plan, traits)
  return takes_turns(spec, plan) and groups(plan) == 3 and plan.block_kv > 64 and traits.mask.edge_count == 0 and (is_capped(traits) or not traits.score.has_tanh)
end
local function has_bounds(_, _, traits) return traits.mask.edge_count > 0 end

local WINDOW = "d 64, window 1023, n 8192"

return {
  -- who multiplies when
  { name = "turns", when = takes_turns,
    why = "Warpgroups multiply in turn, so that the products of one run beside the softmax of another; behind more tiles in flight none waits for others at the ends of their ranges.",
    gain = all(h200("2026-11-22", "ms", { { "d 64, full, n 8192", 1.70, 1.66 }, { "d 64, causal, n 8192", 0.93, 0.88 } }),
               h200("2026-11-23", "ms", { { "d 128, window 1023, n 8192, 4 tiles in flight", 0.203, 0.208 } })) },
  { name = "first_tile_in_turn", when = first_takes_turn, possible = takes_turns,
    why = "The first tile of a warpgroup's rows has a turn too, so that three warpgroups stay a third of a tile's time apart instead of all taking exp2 at once.",
    gain = all(h200("2026-11-23", "ms", { { "d 64, full, n 8192", 1.67, 1.66 }, { "d 64, ALiBi, n 8192", 1.82, 1.72 }, { "d 96, full, n 4096", 0.559, 0.551 }, { "d 64, causal, n 8192", 0.864, 0.879 } }),
               h200("2026-11-23", "% of the time", { { "d 128, full, n 8192, two warpgroups", 100, 101 } }),
               spilled { { "d 64, tanh by its range", 0, 32 } }) },
  { name = "turn_ends_behind_output", possible = takes_turns,
    when = function(spec, plan, traits)
      return first_takes_turn(spec, plan, traits) and plan.block_kv > 96 and rows_see_all(traits) == "1" and is_capped(traits)
    end,
    why = "A turn lasts until O is there too; other scores than caps lack the test behind it that keeps the end of the turn in its place.",
    gain = h200("2026-11-22", "ms", { { "d 64, softcap, n 8192", 2.18, 2.12 }, { "d 64, full, n 8192", 1.64, 1.60 }, { "d 64, full, n 16384", 3.46, 3.50 }, { "d 64, ALiBi, n 8192", 1.89, 2.89 } }) },
  { name = "turn_ends_at_last_part", possible = function(_, plan, traits) return takes_turns(nil, plan) and shape.part_columns(plan) ~= nil end,
    when = function() return true end,
    why = "Where sums go to O apart, a turn lasts until the last of the products that make them have begun: the softmax of one warpgroup runs beside the products of the other, not beside its softmax.",
    gain = h200("2026-11-28", "ms", { { "e4m3, d 128, full, n 8192", 2.57, 2.35 }, { "e4m3, d 128, causal, n 8192", 1.313, 1.174 }, { "e4m3, d 128, full, n 8192, 128 keys", 2.44, 2.29 } }) },
  { name = "turn_kept_in_place", possible = function(spec, plan, traits) return takes_turns(spec, plan) and shape.scale_has_a_place(traits) end,
    when = function() return true end,
    why = "The scale comes from shared memory behind the turn: weights that take it are not made before the turn's end, while others wait. Each lane has its own copy, else a tile moves it to a uniform register. Weights with a trial stay behind the end as it is.",
    gain = h200("2026-11-27", "ms", { { "d 64, full, n 4096, log-softmax", 1.885, 1.722 }, { "d 64, full, n 4096, sigmoid", 1.186, 1.171 }, { "d 64, full, n 4096, retention", 0.824, 0.840 } }) },

  -- products
  { name = "tile_sums_apart", possible = function(_, plan) return shape.part_columns(plan) ~= nil end, when = function() return true end,
    why = "Products with a tile of keys are summed apart and then added to O in float32: a sum of 8-bit products keeps 13 to 14 bits, of 8192 keys it loses 6e-3, of 131072 8e-2.",
    gain = h200("2026-11-28", "ms", { { "e4m3, d 128, full, n 8192", 2.22, 2.35 }, { "e4m3, d 128, causal, n 8192", 1.134, 1.174 } }) },

  { name = "values_before_scores", possible = function(_, plan) return shape.part_columns(plan) ~= nil and shape.values_come_first() end, when = function() return true end,
    why = "Where O is wide and sums go to it apart, O += P V of the tile before comes before S of the next one, in parts two of which are in flight: parts and S have the same registers, and while O takes one part the next one is multiplied.",
    gain = spilled { { "e4m3, d 256, full", 108, 0 }, { "e4m3, d 256, causal", 176, 0 }, { "e4m3, d 192, full, parts of the keys", 88, 0 } } },
  { name = "chunks_by_exclusive_or", possible = function() return shape.turns_values == true end, when = function() return shape.values_come_first() end,
    why = "Warps that turn V find the chunks of a row by an exclusive or with its address, so that the places of eight of them are in no registers.",
    gain = spilled { { "e4m3, d 256, full", 8, 0 }, { "e4m3, d 256, causal", 8, 0 } } },

  -- tiles of keys
  { name = "separate_whole_tiles",
    possible = function(_, _, traits) -- some tiles may be whole, others not
      local always = rows_see_all(traits)
      return always ~= "0" and (always ~= "1" or traits.mask.reads_memory or #traits.input.names > 0)
    end,
    when = function(spec, plan, traits)
      local pays = spec.d < 192 and (plan.block_kv > 64 or groups(plan) > 3 and traits.mask.edge_count < 2)
      return pays and (traits.score.is_s or groups(plan) < 3 and (traits.score.tanhs_are_of_scaled_s or not traits.score.has_tanh))
    end,
    why = "Tiles that the rows see whole have code of their own: without a test between, weights are made beside the last products.",
    gain = all(h200("2026-11-20", "TFLOP/s", { { "d 128, full, n 4096", 742, 773 }, { "d 128, causal, n 4096", 686, 713 } }),
               h200("2026-11-22", "ms", { { "d 64, causal, n 8192", 0.878, 0.864 }, { "d 128, window 1023, n 8192, 64 keys", 0.200, 0.205 } }),
               h200("2026-11-22", "ms", { { "d 64, causal, n 1024, 256 rows", 0.152, 0.150 }, { "d 64, causal, n 4096, 256 rows", 0.465, 0.460 }, { "d 64, window 1023, n 8192, 256 rows", 0.269, 0.270 }, { "d 64, window 1023, n 8192, 256 rows, 4 tiles in flight", 0.262, 0.268 } }),
               h200("2026-11-25", "ms", { { "d 192, causal, n 1024", 0.1216, 0.1214 }, { "d 192, causal, n 4096", 0.3510, 0.3504 }, { "d 192, causal, n 8192", 0.6651, 0.6647 } }),
               spilled { { "other scores, the least", 0, 16 }, { "other scores, the most", 0, 650 } }) },
  { name = "whole_tiles_by_range", possible = function(_, _, traits) return knows_range(traits) and not traits.mask.has_gaps.keys end,
    when = function(_, _, traits) return traits.mask.edge_count > 1 end,
    why = "Where rows see keys between two bounds, which tiles they see at all and which they see whole is known once for all tiles instead of tested one by one.",
    gain = h200("2026-11-24", "ms", { { WINDOW, 0.256, 0.249 }, { "d 64, window 255, n 8192", 0.121, 0.117 }, { "d 128, window 1023, n 8192", 0.198, 0.194 }, { "d 64, causal, n 8192", 0.852, 0.889 } }) },
  { name = "first_tile_in_halves",
    possible = function(_, plan, traits)
      return not shape.is_wide and not types.p.below and traits.norm.trial ~= nil and traits.score.is_s and traits.mask.row_sees_a_range == true and plan.block_kv > 64
    end,
    when = has_bounds,
    why = "Under a mask half of a warpgroup's first tile is often behind all that its rows see, and bits that are tested beside exp2 cost less than before it.",
    gain = h200("2026-11-23", "ms", { { "d 64, causal, n 1024", 0.0931, 0.0894 }, { "d 64, causal, n 8192", 0.871, 0.865 }, { WINDOW, 0.264, 0.259 }, { "d 192/128, causal, n 1024", 0.0852, 0.0834 } }) },
  { name = "wait_before_weights", when = function(_, plan, traits) return groups(plan) > 2 and traits.score.has_tanh end,
    why = "A wait that is over stands before the weights of a score with tanh: weights that are made beside the products take registers that are not there.",
    gain = all(spilled { { "d 64, softcap by tanh, 192 rows", 16, 0 } }, h200("2026-11-20", "ms", { { "d 64, softcap, n 8192, 64 keys", 3.56, 2.92 } })) },

  -- rows of a thread
  { name = "two_sums_a_row", when = function(_, _, traits) return not is_capped(traits) and not shape.is_wide end,
    why = "A row's weights are added up in two sums beside each other; a cap, and heads wider than 256, have no register left for the second one.",
    gain = {} },
  { name = "caps_by_range_under_other_masks", when = false,
    why = "Weights of a cap are taken by its polynomial where a mask shows a row more than one range of keys: its tests are made twice.",
    gain = spilled { { "the least", 0, 8 }, { "the most", 0, 136 } } },
  { name = "scale_stays_in_register", when = function(_, _, traits) return traits.score.rows_share_terms end,
    why = "The scale is shuffled where rows share terms; otherwise each tile multiplies it by log2 e and moves the product to a uniform register.",
    gain = h200("2026-11-23", "ms", { { "d 128, ALiBi, causal, n 8192", 0.739, 0.729 } }) },
  { name = "number_stays_in_register", when = function(_, _, traits) return traits.input.has_f32_number == true end,
    why = "A number of the score is shuffled, so that its load stays before the loop; among the products it serialises them (NVRTC 13.0, C7511 under chunked(48)).",
    gain = {} },
  { name = "lane_of_output_shuffled", possible = function(_, plan) return has_parts(plan) or shape.values_come_first() end,
    when = function(spec, _, traits) return columns(spec.dv) > 192 or traits.score.rows_share_terms end,
    why = "The lane that writes O is shuffled, so that what is made of it is not kept from before the loop over jobs.",
    gain = spilled { { "d 256, parts", 4, 0 }, { "d 64, s + k / 100, parts", 8, 0 }, { "e4m3, d 256, packed queries", 32, 0 } } },
  { name = "thread_of_output_shuffled", possible = function() return shape.values_come_first() end,
    when = function(spec, _, traits) return columns(spec.dv) > 192 and seq.slices ~= nil and traits.score.has_tanh end,
    why = "The number of the thread that writes O is shuffled, so that its warp's rows are not kept from before the loop over jobs, either.",
    gain = spilled { { "e4m3, d 256, softcap, slices", 8, 0 } } },
  { name = "movers_of_few_registers", when = false,
    why = "The threads that move data keep 24 registers in parts of many columns, too.",
    gain = all(h200("2026-11-25", "TFLOP/s", { { "d 256, n 8192, parts", 847, 829 } }), spilled { { "d 40, parts of 256 columns", 0, 8 } }) },
  { name = "movers_of_many_registers", when = false, why = "The threads that move data keep 40 registers, the others 232.",
    gain = h200("2026-11-20", "TFLOP/s", { { "d 128, full, n 1024, 128 rows", 704, 691 }, { "d 128, full, n 8192, 128 rows", 767, 764 } }) },

  -- which rows a block takes
  -- beside a walk by the warp that loads, whose records told of their own tile
  { name = "slices_walked_ahead", possible = function() return seq.slices ~= nil and not shape.turns_values end, when = function() return true end,
    why = "A warp of its own walks over slices, some tiles ahead and into the next rows, so that the one that loads K and V only waits for their slots; the one that lists rows loads Q.",
    gain = all(h200("2026-11-28", "ms", { { "d 128, one slice of 32768 tokens", 55.5, 54.4 }, { "d 128, one causal slice of 32768 tokens", 28.0, 27.0 }, { "d 128, 16 documents of 32768 tokens", 2.81, 2.71 },
                                          { "d 128, a window by three slices, 32768 tokens", 6.14, 5.80 }, { "d 128, a prefix of 8 documents, 32768 tokens", 8.87, 8.30 }, { "d 128, 8 blocks that see those before, 32768 tokens", 31.5, 30.1 },
                                          { "d 64, one slice of 32768 tokens, 128 and 192 rows", 37.4, 32.5 }, { "d 256, one slice of 32768 tokens", 103.4, 97.9 } })) },
  { name = "slices_before_by_lanes", possible = function() return seq.slices ~= nil end, when = function() return true end,
    why = "The lanes of a warp look for the earlier slices that share a tile with its own slice beside each other, instead of all of them one by one.",
    gain = h200("2026-11-28", "ms", { { "d 128, 4096 random slices of 32768 tokens", 11.16, 8.99 } }) },
  { name = "claims", possible = function(_, plan) return not has_parts(plan) end,
    when = function(spec, plan, traits)
      return not seq.is_dense or traits.mask.edge_count > 0 or not shape.tiled_input() and (spec.d > 128 or plan.block_q > 128)
    end,
    why = "Blocks claim tiles of rows instead of taking them in turn; where they read tiles of an input, heads or batches share those side by side if blocks take turns.",
    gain = h200("2026-11-25", "ms", { { "d 256, full, n 512", 0.1153, 0.1141 }, { "d 256, full, n 8192", 1.342, 1.338 }, { "d 64, full, n 512", 0.1358, 0.1338 }, { "d 64, full, n 2048", 0.448, 0.447 }, { "d 64, full, n 8192", 1.69, 1.687 }, { "d 192, full, n 512", 0.1168, 0.1161 },
                                        { "d 192/128, full, n 1024", 0.1567, 0.1565 }, { "d 96, full, n 512, 128 rows", 0.1220, 0.1266 }, { "d 128, full, n 512, 128 rows", 0.1073, 0.1100 }, { "d 96, full, n 1024, 128 rows", 0.1883, 0.1910 } }) },
  { name = "sections_of_heads", possible = function() return seq.is_dense end, when = has_bounds,
    why = "Where a mask makes tiles differ, the longest tiles of a section of heads come first, whose K and V fit the L2 cache; the keys count that rows next to each other see.",
    gain = h200("2026-11-23", "ms", { { WINDOW, 0.259, 0.256 }, { "d 128, window 1023, n 8192", 0.203, 0.197 } }) },
  { name = "first_job_made_by_movers", when = false,
    why = "The thread that makes the barriers makes the first job and its loads; movers begin later by a chain of divisions, and three threads wait for one another.",
    gain = h200("2026-11-24", "ms", { { "d 64, causal, n 512", 0.1028, 0.1038 }, { "d 128, causal, n 512", 0.0931, 0.0941 }, { "d 256, causal, n 512", 0.0921, 0.0931 }, { "d 128, full, n 512", 0.1106, 0.1115 } }) },
  { name = "second_slot_of_q_left_out", when = false,
    why = "What is left of a block's memory goes to slots of Q beyond one for each warpgroup.",
    gain = h200("2026-11-25", "ms", { { "d 256, full, n 512", 0.115, 0.116 }, { "d 256, full, n 16384", 2.67, 2.75 }, { "d 256, causal, n 512", 0.0893, 0.0917 }, { "d 256, causal, n 1024", 0.124, 0.127 }, { "d 192, full, n 4096", 0.645, 0.650 }, { "d 192, causal, n 4096", 0.352, 0.357 } }) },

  -- tried and lost
  { name = "weights_beside_last_part", when = false, why = "Weights of e4m3 go to registers of their own beside the last products of the tile before, and move to those that products read behind it.",
    gain = h200("2026-11-28", "ms", { { "e4m3, d 128, full, n 8192, 128 keys", 2.29, 2.39 }, { "e4m3, d 128, causal, n 8192, 128 keys", 1.215, 1.279 } }) },
  { name = "weights_beside_first_part", when = false, why = "The weights of 32 keys of e4m3 are made between S and the wait for the first products with the tile before, in registers of their own.",
    gain = h200("2026-11-29", "TFLOP/s", { { "e4m3, d 128, full, n 8192, 160 keys", 988, 996 }, { "e4m3, d 128, full, n 8192, 128 keys", 1020, 912 } }) },
  { name = "weights_added_in_pairs", when = false, why = "Two weights of e4m3 are added before they go to the sum of their row.",
    gain = h200("2026-11-29", "TFLOP/s", { { "e4m3, d 128, full, n 8192, 160 keys", 1001, 989 }, { "e4m3, d 128, causal, n 8192, 160 keys", 985, 971 }, { "e4m3, d 128, causal, n 8192, 128 keys", 978, 992 },
                                           { "e4m3, d 64, full, n 8192, 128 keys", 632, 528 }, { "e4m3, d 192/128, full, n 8192, 160 keys", 1105, 1118 } }) },
  { name = "all_parts_in_flight", when = false, why = "Both parts of O's products of e4m3 begin behind S, each in registers of its own.",
    gain = h200("2026-11-29", "TFLOP/s", { { "e4m3, d 128, full, n 8192, 128 keys", 1020, 912 } }) },
  { name = "next_keys_asked_for_ahead", when = false, why = "Whether K of the next tile of e4m3 is there is asked behind the last products instead of before the turn.",
    gain = h200("2026-11-29", "TFLOP/s", { { "e4m3, d 128, full, n 8192, 128 keys", 1030, 1004 }, { "e4m3, d 128, causal, n 8192, 128 keys", 977, 951 } }) },
  { name = "values_turned_by_a_warpgroup", when = false, why = "A warpgroup of its own turns V of e4m3, a warp beside each that multiplies; those have 8 registers more where sequences are dense.",
    gain = all(h200("2026-11-29", "TFLOP/s", { { "e4m3, d 128, full, n 8192, 160 keys", 986, 1007 }, { "e4m3, d 128, full, n 8192, parts", 1035, 1016 }, { "e4m3, d 128, causal, n 8192, 160 keys", 980, 975 }, { "e4m3, d 128, causal, n 8192, 128 keys", 974, 991 },
                                               { "e4m3, d 64, full, n 8192, 160 keys", 620, 632 }, { "e4m3, d 192/128, causal, n 8192, 160 keys", 1063, 1072 } }), spilled { { "e4m3, d 256, packed queries", 0, 96 } }) },
  { name = "some_weights_by_polynomial", when = false, why = "A quarter of the weights of e4m3 are taken by a polynomial of degree 3 instead of exp2.",
    gain = h200("2026-11-28", "ms", { { "e4m3, d 128, full, n 8192, 128 keys", 2.29, 2.55 }, { "e4m3, d 128, causal, n 8192, 128 keys", 1.215, 1.275 } }) },
  { name = "next_slice_told_by_loads", when = false, why = "The record of a tile of slices says of the next tile who sees it, where the warp that walks loads K and V, too: it keeps those that multiply waiting.",
    gain = h200("2026-11-28", "ms", { { "d 128, one slice of 32768 tokens", 55.0, 66.5 }, { "d 64, one slice of 32768 tokens", 37.8, 37.5 }, { "d 256, one slice of 32768 tokens", 100.0, 114.6 }, { "d 192/128, one slice of 32768 tokens", 65.6, 72.4 } }) },
  { name = "slice_kept_by_walk", when = false, why = "The same, and that warp keeps the slice it is in instead of its number.",
    gain = h200("2026-11-28", "ms", { { "d 128, one slice of 32768 tokens", 55.0, 56.7 }, { "d 128, 16 documents of 32768 tokens", 2.90, 3.15 }, { "d 64, one slice of 32768 tokens", 37.8, 41.8 }, { "d 256, one slice of 32768 tokens", 100.0, 111.0 }, { "d 192/128, one slice of 32768 tokens", 65.6, 62.8 } }) },
  { name = "walk_alone_beside_loads", when = false, why = "A warp of its own walks, but who sees a tile is looked up when its K is there, between the weights and the turn of a warpgroup.",
    gain = h200("2026-11-28", "ms", { { "d 128, one slice of 32768 tokens", 55.1, 56.0 }, { "d 128, one causal slice of 32768 tokens", 27.7, 27.6 }, { "d 128, 16 documents of 32768 tokens", 2.82, 2.80 } }) },
  { name = "left_tiles_without_products", when = false, why = "S of a tile behind one that a warpgroup has left is made alone, not beside the products of V with weights of zero; the turn of a tile that is left ends when its products are on their way.",
    gain = h200("2026-11-28", "ms", { { "d 128, one slice of 32768 tokens", 54.4, 54.5 }, { "d 128, one causal slice of 32768 tokens", 27.0, 27.3 }, { "d 128, a window by three slices, 32768 tokens", 5.80, 6.27 }, { "d 128, 8 blocks that see those before, 32768 tokens", 30.1, 30.7 },
                                      { "d 128, 4096 random slices of 32768 tokens", 8.75, 8.76 }, { "d 128, 1000 random slices of 32768 tokens", 2.54, 2.47 }, { "d 256, one slice of 32768 tokens", 97.9, 101.5 } }) },
  { name = "four_tiles_of_slices_in_flight", when = false, why = "Of slices 192 rows take tiles of 64 keys, 4 of them in flight and without turns.",
    gain = h200("2026-11-28", "ms", { { "d 128, one slice of 32768 tokens", 56.0, 59.3 }, { "d 128, 16 documents of 32768 tokens", 2.80, 2.88 }, { "d 128, 4096 random slices of 32768 tokens", 8.99, 8.83 } }) },
  { name = "next_product_beside_last_output", when = false,
    why = "A flat loop takes the first S of the next rows beside the last O of the rows before.",
    gain = h200("2026-11-20", "% of the time", { { "d 128, full, n 512", 100, 101.6 }, { "d 128, full, n 2048", 100, 99.5 }, { "d 128, causal, the least", 100, 102 }, { "d 128, causal, the most", 100, 105 } }) },
  { name = "fixed_turns_of_tiles", when = false, why = "Blocks take tiles of rows in a fixed turn under a mask.",
    gain = all(h200("2026-11-20", "TFLOP/s", { { "d 256, causal, n 1024", 524, 450 }, { "d 256, causal, n 8192", 827, 565 } }), h200("2026-11-22", "ms", { { WINDOW, 0.265, 0.276 } })) },
  { name = "launch_told_at_start", when = false, why = "The next launch is told to start at the start of the one before instead of at its end.",
    gain = h200("2026-11-20", "us", { { "d 128, full, b 16, n 1024", 196.3, 198.6 }, { "d 128, full, b 32, n 512", 110.5, 113.5 } }) },
  { name = "hidden_columns_by_vote", when = false, why = "Groups of columns that no row sees are left out by a vote.", gain = h200("2026-11-22", "ms", { { WINDOW, 0.265, 0.268 } }) },
  { name = "rows_from_last_to_first", when = false, why = "Rows are handed to warpgroups from the last to the first.", gain = h200("2026-11-22", "ms", { { WINDOW, 0.265, 0.269 } }) },
  { name = "no_turns", when = false, why = "Warpgroups multiply as they come.", gain = h200("2026-11-22", "ms", { { WINDOW, 0.265, 0.283 } }) },
  { name = "lock_instead_of_turns", when = false, why = "A lock in shared memory takes the place of turns; a tile that is left does not take it.", gain = h200("2026-11-22", "ms", { { WINDOW, 0.265, 0.302 } }) },
  { name = "many_small_tiles", when = false, why = "Tiles of 64 keys, 2 to 8 of them in flight.", gain = h200("2026-11-22", "ms", { { WINDOW, 0.265, 0.295 } }) },
  { name = "half_tiles_left_out", when = false, why = "The half tiles at both ends that no row sees are left out.",
    gain = all(h200("2026-11-23", "ms", { { WINDOW, 0.265, 0.258 } }), h200("2026-11-23", "% of the time", { { "d 64, causal, n 8192", 100, 101.7 } })) },
  { name = "next_words_beside_last_products", when = false, why = "The words of the next rows are read beside the last products.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.259, 0.261 } }) },
  { name = "mask_added_by_product", when = false, why = "Masked pairs are what the product is added to.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.259, 0.264 } }) },
  { name = "first_tiles_in_turn_at_windows", when = false, why = "First tiles take turns under windows.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.259, 0.262 } }) },
  { name = "passed_tiles_without_turns", when = false, why = "Tiles that only other warpgroups see take no turns, with 4 tiles in flight.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.259, 0.260 } }) },
  { name = "four_tiles_in_flight", when = false, why = "3 or 4 tiles are in flight.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.256, 0.260 } }) },
  { name = "turns_beside_four_tiles", when = false, why = "Warpgroups take turns beside 3 or 4 tiles in flight.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.256, 0.263 } }) },
  { name = "one_edge_masked", when = false, why = "Only the half of a tile that has an edge is masked.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.256, 0.257 } }) },
  { name = "fewer_heads_of_keys", when = false, why = "4 heads of K and V serve 64 of Q: how much their loads cost.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.256, 0.254 } }) },
  { name = "wide_blocks_at_windows", when = false, why = "Blocks of 256 rows take tiles of 64 keys.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.256, 0.264 } }) },
  { name = "new_keys_prefetched", when = false, why = "Keys that no rows before have seen are fetched to the L2 cache when the rows begin.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.256, 0.258 } }) },
  { name = "all_keys_prefetched", when = false, why = "All keys of the rows are fetched to the L2 cache when they begin.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.256, 0.277 } }) },
  { name = "short_rows_first", when = false, why = "Some or all of the short rows come first.", gain = h200("2026-11-23", "ms", { { WINDOW, 0.256, 0.256 } }) },
  { name = "words_behind_barrier_of_q", when = false, why = "A job's words are read behind the barrier of its Q alone.",
    gain = h200("2026-11-24", "% of the time", { { "d 64, full, n 8192", 100, 101 }, { "d 128, full, n 8192", 100, 99 } }) },
  { name = "tile_shared_by_two_blocks", when = false, why = "Two blocks load half a tile of K and V each for both, without release arrives.",
    gain = h200("2026-11-25", "ms", { { "d 64, full, n 1024", 0.239, 0.270 }, { "d 64, full, n 8192", 1.66, 1.76 }, { "d 128, full, n 1024", 0.189, 0.195 }, { "d 128, full, n 8192", 1.350, 1.360 }, { "d 128, full, n 16384", 2.804, 2.817 }, { "d 256, full, n 4096", 0.673, 0.671 }, { "d 256, full, n 16384", 2.669, 2.717 } }) },
  { name = "heads_of_a_group_together", when = false, why = "A block takes 64 rows of each query head of a KV head, which would have to divide a shape's heads.",
    gain = h200("2026-11-25", "ms", { { "d 128, causal, 32 over 8 heads, n 1024", 0.2369, 0.2357 }, { "d 128, causal, 32 over 8 heads, n 2048", 0.4059, 0.4040 }, { "d 128, causal, 32 over 8 heads, n 8192, 128 rows", 1.437, 1.431 }, { "d 64, causal, four heads, n 2048", 0.2524, 0.2470 } }) },
  { name = "input_read_beside_products", when = false, why = "Weights of a dense input are made before the products are done.",
    gain = h200("2026-11-20", "ms", { { "d 128, dense bias", 0.93, 1.16 } }) },
  { name = "three_parts_of_each_tile", when = false, why = "Each of the last tiles of rows is taken in three parts where there is room, instead of in spans of all their keys.",
    gain = h200("2026-11-25", "ms", { { "d 64, one head, n 16384", 0.116, 0.119 } }) },
  { name = "maximum_of_caps", when = false,
    why = "A row's weights under a cap have its largest score as their reference, not the cap, which bounds them all.",
    gain = h200("2026-11-22", "ms", { { "d 64, softcap, n 4096, 16384 tokens", 1.150, 1.434 }, { "d 128, softcap, n 4096, 16384 tokens", 0.823, 0.949 } }) },
}
