-- input_grads.lua: how the gradients of a score's inputs are summed in float32 and stored: what the
-- families' backward passes share.
local grads = {}

-- Where only some shapes have sums, x.shared is 1 for them and else 0.
local function only_shared(x, count) return x.shared and count .. " * " .. x.shared or count end

-- Regions of sums, with their fill of zeros, for the gradients that are `summed`.
function grads.add_regions(regions, steps)
  for _, x in ipairs(hooks.input.grads) do
    if x.summed then
      regions[#regions + 1] = { name = x.region, count = only_shared(x, x.count) }
      table.insert(steps, 1, { zero = x.region })
    end
  end
end

-- The pass that stores the sums as the gradient: a thread an element, or a block a row of keys.
function grads.finish_step(x, threads)
  local lengths = { b = "b", h = "h", q = "nq" }
  local blocks = x.kind ~= "dense" and string.format("cdiv(%s, %d)", x.count, threads) or
    x.extents:gsub("[1k]", ""):gsub(".", function(axis) return lengths[axis] .. " * " end):sub(1, -4)
  return { entry = "attn_bwd_" .. x.output, grid = { only_shared(x, blocks), "1", "1" },
           threads = threads, registers = 40, work = "1", shared = {} }
end

-- Why an input's gradient cannot be made in a fixed order, nil if each can: an element is one writer's only
-- where the pairs that read it are known from its index.
function grads.refused()
  for _, x in ipairs(hooks.input.grads) do
    if spec.deterministic == "true" and x.kind == "indexed" and not hooks.input.affine(x) then
      return string.format("deterministic=true: %s's gradient has no fixed order: its index is not affine in q and k", x.name)
    end
  end
end

return grads
