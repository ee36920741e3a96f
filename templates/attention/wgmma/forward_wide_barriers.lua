-- forward_wide_barriers.lua: the mbarriers of a block of wgmma's forward for wide heads: of Q, of pieces of K and V, each of which
-- comes from all blocks of the cluster and is empty when both warpgroups of all of them have read it, and of P of a tile, which both
-- warpgroups write. `n` has the pieces in flight and the blocks of a cluster.
local WARPS = 8 -- of the two warpgroups that multiply
return function(n)
  return {
    { "q_full", 1, 1 }, { "piece_full", n.pieces, 1 }, { "piece_empty", n.pieces, WARPS * n.cluster }, { "p_full", 2, WARPS },
  }
end
