-- barriers.lua: the mbarriers of a product: in pairs, of a slot whose tiles are there and one whose tiles have been read, by the
-- warps of all blocks that fill it; the same of a forward's biases, and of a warpgroup's residual. `n` has how many there are: stages,
-- groups, cluster.
return function(n)
  local has_bias, has_residual = spec.pass == "forward" and hooks.has_bias, spec.pass == "forward" and hooks.has_residual
  return {
    { "full", n.stages, 1 }, { "empty", n.stages, 4 * n.groups * n.cluster },
    { "bias_full", has_bias and 2 or 0, 1 }, { "bias_empty", has_bias and 2 or 0, 4 * n.groups }, { "residual_full", has_residual and n.groups or 0, 1 },
  }
end
