-- backward.lua: dx = dp W and dW = dp^T x on the warpgroup products and TMA of sm_90a (product.cut). Where dW has too few tiles for a
-- device blocks share its sums: its parts are added in their order.
local wgmma, linear = run("linear/wgmma/wgmma.lua"), run("linear/linear.lua")
local family = { template = "linear/wgmma/backward.cut", library = { "tile/tiles.cut", "tile/columns.cut", "linear/epilogue.cut" },
                 applies = wgmma.applies, shared = wgmma.shared, registers = wgmma.registers }

local BLOCKS, LEAST_ROWS, LONG_ROWS = 132, 512, 2048 -- what fills a device; what a part is worth, and what is long

function family.candidates(spec, arch)
  return wgmma.that_fit(family, spec, arch, { { block_q = 128, block_kv = 256, stages = 4, warps = 12 } })
end

function family.describe(spec, plan)
  local d = linear.backward(16)
  if hooks.keeps then d.regions[1].width = hooks.rows_of_w end
  local dp = wgmma.map(linear.dp)
  d.maps = { dp, wgmma.map("w"), wgmma.map("x"), wgmma.map("dx"), wgmma.map("dw") }
  local of_dx, of_dw = wgmma.tiles(plan, "rows", spec.width_in, plan.block_kv), wgmma.tiles(plan, hooks.rows_of_w, spec.width_in, plan.block_kv)
  -- dx's tiles fill half of the device beside dW's in few parts, which are no longer than LONG_ROWS: nobody waits for one at the end.
  local most, few = math.max(1, math.min(16, BLOCKS // of_dw)), math.max(1, math.min(16, BLOCKS // 2 // of_dw))
  local parts = linear.split(d, { few = few, most = most, long = LONG_ROWS, least = LEAST_ROWS })
  local all = string.format("%s + %s * %s", of_dx, of_dw, parts)
  local step = wgmma.step("linear_bwd_dx_dw", plan, all, string.format("cdiv(%s * %d + %s * rows, %s)", of_dx, hooks.rows_of_w, of_dw, all))
  step.shared = wgmma.shared(spec, plan)
  linear.add(d.steps, step)
  linear.add_parts(d, most)
  wgmma.add_constants(d, plan)
  return d
end

return family
