-- input_grads.lua: how the gradients of a score's inputs are summed in float32 and stored: what the
-- families' backward passes share.
local grads = {}

-- 0 where a dense gradient's pairs have elements of their own, else 1, as where there are elements and no
-- pairs: an expression of the recipe. "0" where every shape is so.
local function is_shared(x)
  local missing = {}
  for axis in ("bh"):gmatch(".") do
    if not x.extents:find(axis) then missing[#missing + 1] = axis end
  end
  local sharing = table.concat(missing, " * ")
  return #missing == 0 and "0" or string.format("(1 - max(0, 1 - max(%s - 1, 1 - %s)))", sharing, sharing)
end

-- The pass that makes dK and dV adds what its tiles give to the sums of an input's gradient. A dense one
-- it stores itself where each pair has an element of its own; where batches or heads share elements it
-- is summed too. A gradient of a deterministic kernel has a pass that computes S and dP again.
function grads.sum_in_tiles(deterministic)
  for _, x in ipairs(hooks.input.grads) do
    x.stored = not deterministic and x.kind == "dense"
    x.shared = x.stored and is_shared(x)
    x.summed = not deterministic and x.shared ~= "0"
  end
end

-- Where only some shapes have sums, x.shared is 1 for them and else 0.
local function only_shared(x, count) return x.shared and count .. " * " .. x.shared or count end

-- How many heads a dense gradient has, an expression of the recipe; the number of one in the kernel.
function grads.heads_of(x)
  local heads = { ["11"] = "1", ["1h"] = "h", b1 = "b", bh = "b * h" }
  return heads[x.extents:sub(1, 2)]
end

function grads.head_of(x)
  local numbers = { ["11"] = "0", ["1h"] = "h", b1 = "b", bh = "(b * p.h + h)" }
  return numbers[x.extents:sub(1, 2)]
end

-- x.sums of dense gradients: sums lie by tiles of S^T, of so many keys, in the order of their fragments. padded: rows up to
-- the end of the last tile, an expression of the recipe.
function grads.count_by_tiles(padded, keys)
  for _, x in ipairs(hooks.input.grads) do
    x.sums = x.stored and string.format("%s * %s * roundup(nk, %d)", grads.heads_of(x), padded, keys) or nil
  end
end

-- Regions of sums, with their fill of zeros, for the gradients that are `summed`: x.sums of them, or as many
-- as the gradient has elements.
function grads.add_regions(regions, steps)
  for _, x in ipairs(hooks.input.grads) do
    if x.summed then
      regions[#regions + 1] = { name = x.region, count = only_shared(x, x.sums or x.count) }
      table.insert(steps, 1, { zero = x.region })
    end
  end
end

-- Are there tiles of S that no block makes?
function grads.leaves_tiles()
  local range = formula.queries
  return seq.slices ~= nil or range.first ~= nil or range.last ~= nil or hooks.mask.has_gaps.queries ~= nil and hooks.mask.has_gaps.queries
end

-- The pass that stores zeros there as a dense gradient whose pairs have elements of their own.
function grads.zero_step(x, threads)
  return { entry = "attn_bwd_zero_" .. x.output, threads = threads, registers = 40, work = "1", shared = {},
           grid = { string.format("cdiv(nq * nk, %d) * (1 - %s)", 8 * threads, x.shared), "h", "b" } }
end

-- The pass that stores the sums as the gradient: a thread an element, or so many `blocks`.
function grads.finish_step(x, threads, blocks)
  blocks = blocks or string.format("cdiv(%s, %d)", x.count, threads)
  return { entry = "attn_bwd_" .. x.output, grid = { only_shared(x, blocks), "1", "1" },
           threads = threads, registers = 40, work = "1", shared = {} }
end

-- A token has one sequence, and its gradient one writer. by_tiles: a family that stores gradients of pairs tile by tile.
local function refused_layout(x, by_tiles)
  local has = {}
  for _, length in ipairs(x.lengths) do has[length] = true end
  if has.tokens_q and has.tokens_k then return string.format("the gradient of %s would be of all pairs of packed queries and keys", x.name) end
  if (has.tokens_q or has.tokens_k) and has.b then
    return string.format("the gradient of %s has an axis of the batch beside one of packed tokens, which say it", x.name)
  end
  if by_tiles and x.kind == "dense" and not seq.has_dense_pairs then
    return string.format("the gradient of %s is of pairs of %s", x.name, seq.slices and "slices" or "packed sequences")
  end
  if seq.slices and x.kind == "indexed" and spec.deterministic == "true" then
    return string.format("deterministic=true: the gradient of %s runs over slices of any places", x.name)
  end
  if by_tiles and (has.tokens_q or has.tokens_k) and x.kind == "indexed" and spec.deterministic == "true" then
    return string.format("deterministic=true: the gradient of %s by distance runs over packed tokens", x.name)
  end
end

-- Why an input's gradient cannot be made in a fixed order, nil if each can: an element is one writer's only
-- where the pairs that read it are known from its index. by_distance: the family knows them from k - q alone.
function grads.refused(by_distance)
  for _, x in ipairs(hooks.input.grads) do
    local why = refused_layout(x, by_distance)
    if why then return why end
    if spec.deterministic == "true" and x.kind == "indexed" then
      local what = string.format("deterministic=true: %s's gradient has no fixed order", x.name)
      if not hooks.input.pairs_of_element(x) then return what .. ": its index is not affine in q and k" end
      if by_distance and not hooks.input.index_by_distance(x) then return what .. " here: its index is none of k - q alone" end
    end
  end
end

return grads
