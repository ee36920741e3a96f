-- input_grads.lua: how the gradients of a score's inputs are summed in float32 and stored: what the
-- families' backward passes share.
local grads = {}

-- Regions of sums, with their fill of zeros, for the gradients that `summed` accepts.
function grads.add_regions(regions, steps, summed)
  for _, x in ipairs(hooks.input.grads) do
    if summed(x) then
      regions[#regions + 1] = { name = x.region, count = x.count }
      table.insert(steps, 1, { zero = x.region })
    end
  end
end

-- The pass that stores the sums as the gradient.
function grads.finish_step(x, threads)
  return { entry = "attn_bwd_" .. x.output, grid = { string.format("cdiv(%s, %d)", x.count, threads), "1", "1" },
           threads = threads, registers = 40, work = "1", shared = {} }
end

-- Why an input's gradient cannot be made in a fixed order, nil if each can: an element is one writer's only
-- where the pairs that read it are known from its index. `affine`: the family can go over those pairs.
function grads.refused(affine)
  for _, x in ipairs(hooks.input.grads) do
    if spec.deterministic == "true" and x.kind == "indexed" and not (affine and hooks.input.affine(x)) then
      local why = hooks.input.affine(x) and "this family sums it as it comes" or "its index is not affine in q and k"
      return string.format("deterministic=true: %s's gradient has no fixed order: %s", x.name, why)
    end
  end
end

return grads
