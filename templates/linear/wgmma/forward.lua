-- forward.lua: y = act(x W^T + b) + residual on the warpgroup products and TMA of sm_90a (product.cut), and with a norm
-- out = norm(x W^T + b + residual) in the same kernel, or, of rows that no cluster holds, in a step behind it.
local wgmma, linear = run("linear/wgmma/wgmma.lua"), run("linear/linear.lua")
local family = { template = wgmma.has_all and "linear/wgmma/norm.cut" or wgmma.leaves_sums and "linear/wgmma/sums.cut" or "linear/wgmma/forward.cut", library = { "tile/tiles.cut", "linear/epilogue.cut", "tile/columns.cut" },
                 applies = wgmma.applies, shared = wgmma.shared, registers = wgmma.registers }

function family.candidates(spec, arch)
  local stages = hooks.has_residual and not wgmma.leaves_sums and 3 or 4
  if wgmma.has_all then
    local plans = {}
    for each = stages, 3, -1 do plans[#plans + 1] = { block_q = 128, block_kv = wgmma.COLUMNS, stages = each, warps = 12 } end
    plans[#plans + 1] = { block_q = 64, block_kv = wgmma.COLUMNS, stages = 2, warps = 8 }
    return wgmma.that_fit(family, spec, arch, plans)
  end
  return wgmma.that_fit(family, spec, arch, {
    { block_q = 128, block_kv = 256, stages = stages, warps = 12 },
    { block_q = 128, block_kv = 128, stages = stages + 2, warps = 12 },
  })
end

function family.describe(spec, plan)
  local d = linear.forward(16)
  if wgmma.leaves_sums then
    d.maps = { wgmma.map("x"), wgmma.map("w") }
  elseif hooks.norm then
    d.maps = { wgmma.map("x", plan.block_q // wgmma.CLUSTER), wgmma.map("w"), wgmma.map("out"), wgmma.map("z") }
  else
    d.maps = { wgmma.map("x"), wgmma.map("w"), wgmma.map("y"), hooks.keeps == "factors" and wgmma.map("keep") or nil }
  end
  if hooks.has_residual and not wgmma.leaves_sums then d.maps[#d.maps + 1] = wgmma.map("residual") end
  local columns = hooks.is_gated and plan.block_kv // 2 or plan.block_kv
  linear.add(d.steps, wgmma.step("linear_fwd", plan, wgmma.tiles(plan, "rows", spec.width_out, columns), spec.width_in))
  linear.add(d.constants, { "WIDTH_IN", spec.width_in, "columns of x" }, { "WIDTH_OUT", spec.width_out, "columns of y" },
             { "KEPT_COLUMNS", hooks.kept_columns, "of what is kept for backward" })
  wgmma.add_constants(d, plan)
  d.shared = wgmma.shared(spec, plan)
  return wgmma.leaves_sums and linear.add_norm(d, 16) or d
end

return family
