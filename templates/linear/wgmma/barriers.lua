-- barriers.lua: the mbarriers of a product: in pairs, of a slot whose tiles are there and one whose tiles have been read, by the
-- warps of all blocks that fill it; the same of a forward's biases, and of a warpgroup's residual; of a norm its vectors, and of each
-- warpgroup the parts that other blocks send, in two turns. `n` has how many there are: stages, groups, cluster; and sharers,
-- warpgroups that have a tile together.
return function(n)
  local is_forward = spec.pass == "forward"
  local leaves_sums = hooks.norm and not run("linear/linear.lua").fits_cluster
  local has_norm = is_forward and hooks.norm and not leaves_sums
  local has_residual = is_forward and hooks.has_residual and not leaves_sums
  local has_bias = is_forward and hooks.has_bias and not hooks.norm
  return {
    { "full", n.stages, 1 }, { "empty", n.stages, 4 * n.sharers * n.cluster },
    { "vectors_full", has_norm and 1 or 0, 1 }, { "parts_full", has_norm and 2 * n.groups or 0, 4 * n.cluster },
    { "bias_full", has_bias and 2 or 0, 1 }, { "bias_empty", has_bias and 2 or 0, 4 * n.sharers }, { "residual_full", has_residual and n.groups or 0, 1 },
  }
end
