-- backward_barriers.lua: the mbarriers of wgmma_backward: of K and V, and in pairs, of a slot that is full and one that is
-- empty, of rows: Q with what is kept of them, and dO; of dS, which warps fill; of jobs; of pieces in the background. `n` has
-- how many there are: stages, ds_stages, groups, pieces.
return function(n)
  local warps = 4 * n.groups
  return {
    { "k_full", 1, 1 }, { "v_full", 1, 1 }, { "q_full", n.stages, 1 }, { "do_full", n.stages, 1 },
    { "rows_empty", n.stages, warps }, { "ds_full", n.ds_stages, warps },
    { "keys_empty", 1, n.groups }, { "job_full", 2, 1 }, { "piece_full", n.pieces, 1 },
  }
end
