-- backward_wide_barriers.lua: the mbarriers of a block of wgmma's backward for wide heads: of its keys and of the other
-- block's K; of slots of Q, and what is kept of its rows; of the halves of dO, each of which one block of the cluster fills for
-- both and so waits for both; of P; of dS, the own part, which one thread says is there, and the one that the other block sends.
-- `n` has the stages, the slots of dO and of dS, and whether jobs are claimed.
--
-- P has no barrier that says that a slot is empty, and Q's counts no warp that makes S: where Q is there for the tile of a slot,
-- dK of the tile before in it has been made, by warps that had read its P, in whose place Q's S was before.
local OWN, BOTH = 4, 8 -- warps of a warpgroup, and of the same one of both blocks
return function(n)
  return {
    { "k_full", 1, 1 }, { "v_full", 1, 1 }, { "other_k_full", 1, 1 },
    { "q_full", n.stages, 1 }, { "q_empty", n.stages, BOTH },
    { "do_full", 2 * n.do_slots, 1 }, { "do_empty", n.do_slots, 2 * BOTH },
    { "p_full", n.stages, OWN },
    { "ds_full", n.ds_slots, 1 }, { "ds_received", n.ds_slots, 1 }, { "ds_empty", n.ds_slots, BOTH },
    { "job_full", n.claims and 1 or 0, 1 }, -- of the second block: the job that the first one has claimed
  }
end
