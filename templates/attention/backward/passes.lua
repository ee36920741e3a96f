-- passes.lua: the passes beside those that take tiles, which families share: kept.cut before them, dq.cut behind
-- them. `padded`: rows up to the end of the last tile, an expression of the recipe.
local passes, tiles = {}, run("tile/tiles.lua")

-- The step of kept.cut; starts_early: beside the end of the step before.
function passes.kept(padded, threads, starts_early)
  return { entry = "attn_bwd_rows", grid = { string.format("cdiv(%s, %d)", padded, threads // 8), "h", seq.batches("q") },
           threads = threads, registers = 64, work = "1", shared = {}, early = starts_early }
end

-- The step of dq.cut.
function passes.dq(padded, threads, starts_early)
  return { entry = "attn_bwd_dq", grid = { string.format("cdiv(%s * %d, %d)", padded, spec.d // 8, 2 * threads), "h", seq.batches("q") },
           threads = threads, registers = 32, work = "1", shared = {}, early = starts_early }
end

-- Adds to the steps the one of head_grads.cut, where the normaliser reads something of a head that takes a gradient.
function passes.add_heads(steps, threads, starts_early)
  if #hooks.norm.head_grads == 0 then return end
  steps[#steps + 1] = { entry = "attn_bwd_heads", grid = { "h", "1", "1" }, threads = threads, registers = 32, work = "1",
                        shared = { { "SM_SUMS", 4 * threads // 32, "a sum of each warp" } }, early = starts_early }
end

-- What they leave in the workspace.
function passes.regions(padded, sums_dq)
  return {
    { name = "kept", count = string.format("%s * %s * 2", seq.count_heads("h"), padded) },
    sums_dq and { name = "dq_sum", count = string.format("%s * %s * %d", seq.count_heads("h"), padded, 8 * tiles.chunks(spec.d)) } or nil,
  }
end

function passes.outputs()
  local outputs = { "dq", "dk", "dv" }
  for _, list in ipairs({ hooks.input.grads, hooks.norm.head_grads }) do
    for _, x in ipairs(list) do outputs[#outputs + 1] = x.output end
  end
  return outputs
end

return passes
