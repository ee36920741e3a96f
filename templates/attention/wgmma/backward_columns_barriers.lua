-- backward_columns_barriers.lua: the mbarriers of a block of wgmma's backward whose clusters divide columns: of its columns of the keys'
-- K and V, of a tile's Q and dO, which the warps that make S or dP read and those that add to dK or dV; of P, and of dS for the warps that
-- make dQ; and of what the blocks' sums of S and of dP are made of: the others' parts are here, and have read this block's.
-- `blocks`: of a cluster.
local OWN = 4 -- warps of a warpgroup
return function(blocks)
  local others = OWN * (blocks - 1)
  return {
    { "k_full", 1, 1 }, { "v_full", 1, 1 }, { "q_full", 1, 1 }, { "q_empty", 1, 2 * OWN }, { "do_full", 1, 1 }, { "do_empty", 1, 2 * OWN },
    { "p_full", 1, OWN }, { "ds_full", 1, OWN }, { "ds_empty", 1, OWN },
    { "s_full", 1, 1 }, { "s_empty", 1, others }, { "dp_full", 1, 1 }, { "dp_empty", 1, others },
  }
end
