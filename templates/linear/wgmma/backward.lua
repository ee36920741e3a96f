-- backward.lua: dx = dp W and dW = dp^T x on the warpgroup products and TMA of sm_90a (product.cut). Where dW has too few tiles for a
-- device blocks share its sums: its parts are added in their order.
local wgmma, linear = run("linear/wgmma/wgmma.lua"), run("linear/linear.lua")
local family = { template = "linear/wgmma/backward.cut", library = { "tile/tiles.cut", "tile/columns.cut", "linear/epilogue.cut" },
                 applies = wgmma.applies, shared = wgmma.shared, registers = wgmma.registers }

local CLUSTERS, LEAST_ROWS = 66, 1024 -- what fills a device; what a part is worth

function family.candidates(spec, arch)
  return wgmma.that_fit(family, spec, arch, { { block_q = 128, block_kv = 256, stages = 4, warps = 12 } })
end

function family.describe(spec, plan)
  local d, shared = linear.backward(16), wgmma.shared(spec, plan)
  if hooks.keeps then d.regions[1].width = hooks.rows_of_w end
  local dp = wgmma.map(linear.dp)
  d.maps = { dp, wgmma.map("w"), wgmma.map("x"), wgmma.map("dx"), wgmma.map("dw") }
  local tiles = cdiv(hooks.rows_of_w, plan.block_q * wgmma.CLUSTER) * cdiv(spec.width_in, plan.block_kv)
  local most = math.max(1, math.min(16, CLUSTERS // tiles))
  local parts = linear.split(d, most, LEAST_ROWS)
  local rows_of_w = tostring(hooks.rows_of_w)
  linear.add(d.steps, wgmma.step("linear_bwd_dx", plan, "rows", spec.width_in, plan.block_kv, rows_of_w, shared),
             wgmma.step("linear_bwd_dw", plan, rows_of_w, spec.width_in, plan.block_kv, string.format("rows / %s", parts), shared, parts))
  linear.add_parts(d, most)
  wgmma.add_constants(d, plan)
  return d
end

return family
