-- passes.lua: the passes beside those that take tiles, which families share: kept.cut before them, dq.cut behind
-- them. `padded`: rows up to the end of the last tile, an expression of the recipe.
local passes, tiles = {}, run("tile/tiles.lua")

-- The step of kept.cut; starts_early: beside the end of the step before.
function passes.kept(padded, threads, starts_early)
  return { entry = "attn_bwd_rows", grid = { string.format("cdiv(%s, %d)", padded, threads // 8), "h", "b" },
           threads = threads, registers = 64, work = "1", shared = {}, early = starts_early }
end

-- The step of dq.cut.
function passes.dq(padded, threads, starts_early)
  return { entry = "attn_bwd_dq", grid = { string.format("cdiv(%s * %d, %d)", padded, spec.d // 8, 2 * threads), "h", "b" },
           threads = threads, registers = 32, work = "1", shared = {}, early = starts_early }
end

-- What they leave in the workspace.
function passes.regions(padded, sums_dq)
  return {
    { name = "kept", count = "b * h * " .. padded .. " * 2" },
    sums_dq and { name = "dq_sum", count = string.format("b * h * %s * %d", padded, 8 * tiles.chunks(spec.d)) } or nil,
  }
end

function passes.outputs()
  local outputs = { "dq", "dk", "dv" }
  for _, x in ipairs(hooks.input.grads) do outputs[#outputs + 1] = x.output end
  return outputs
end

return passes
