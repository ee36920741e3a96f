-- forward_latent_barriers.lua: the mbarriers of a block of wgmma's forward of latent keys: of its jobs, which a warp that moves data
-- reads too; of pieces of K of both tiles;
-- of the columns that one warpgroup multiplies as V in all blocks of the cluster, and of the last piece, which both read; and of P,
-- which one warpgroup writes. `n` has the pieces of a tile and the blocks of a cluster.
local TILES, SIDES, WARPS = 2, 2, 4 -- warps of a side
return function(n)
  return {
    { "job_full", 2, 1 }, { "job_empty", 2, SIDES * WARPS + 1 },
    { "piece_full", TILES * n.pieces, 1 }, { "columns_empty", TILES * SIDES, WARPS * n.cluster }, { "weights_empty", TILES, SIDES * WARPS * n.cluster },
    { "p_full", TILES, WARPS },
  }
end
