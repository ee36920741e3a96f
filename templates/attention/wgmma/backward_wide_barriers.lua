-- backward_wide_barriers.lua: the mbarriers of a block of wgmma's backward for wide heads: of its keys and of the other
-- block's K; of slots of Q, and what is kept of its rows; of the halves of dO, each of which one block of the cluster fills for
-- both and so waits for both; of P; of dS, the own part, which one thread says is there, and the one that the other block sends.
--
-- P has no barrier that says that a slot is empty, and Q's counts no warp that makes S: where Q is there for the tile of a slot,
-- dK of the tile before in it has been made, by warps that had read its P, in whose place Q's S was before.
local OWN, BOTH = 4, 8 -- warps of a warpgroup, and of the same one of both blocks
return run("tile/barriers.lua") {
  { "k_full", 1, 1 }, { "v_full", 1, 1 }, { "other_k_full", 1, 1 },
  { "q_full", STAGES, 1 }, { "q_empty", STAGES, BOTH },
  { "do_full", 2, 1 }, { "do_empty", 1, 2 * BOTH },
  { "p_full", STAGES, OWN },
  { "ds_full", STAGES, 1 }, { "ds_received", STAGES, 1 }, { "ds_empty", STAGES, BOTH },
}
