-- backward_barriers.lua: the mbarriers of wgmma_backward: of K and V, and in pairs, of a slot that is full and one that is
-- empty, of rows: Q with what is kept of them, and dO; of dS, which warps fill; of jobs.
local WARPS = 4 * GROUPS
return run("tile/barriers.lua") {
  { "k_full", 1, 1 }, { "v_full", 1, 1 }, { "q_full", STAGES, 1 }, { "do_full", STAGES, 1 },
  { "rows_empty", STAGES, WARPS }, { "ds_full", DS_STAGES, WARPS },
  { "keys_empty", 1, GROUPS }, { "job_full", 2, 1 },
}
