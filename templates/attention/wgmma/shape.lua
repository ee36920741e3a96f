-- shape.lua: how wide tiles are for warpgroup products, and what the score keeps in them.
local shape = { ROW = 128 } -- bytes of a row of a tile in shared memory, swizzled

-- Blocks of so many columns as a row has, and columns that a product takes.
function shape.blocks(width) return cdiv(width, shape.ROW // types.q.bytes) end
function shape.columns(width) return cdiv(width, types.q.k_step) * types.q.k_step end

-- Bytes of so many rows of a tile.
function shape.rows_bytes(rows, width) return rows * shape.ROW * shape.blocks(width) end

-- Columns of a tensor side by side in a row of a tile.
function shape.row_columns(tensor) return shape.ROW // types[tensor].bytes end

-- Is V turned on its way (transpose.cut)? Bytes of a row of it then, so many keys of one column: a power of 2. Rows of all columns lie
-- behind those of the keys before.
shape.turns_values = types.v.is_byte
function shape.turned_row(plan) return math.min(shape.ROW, plan.block_kv & -plan.block_kv) end
-- Registers of P: as many weights in each as a product's operand has.
function shape.p_registers(plan) return plan.block_kv * types.p.bytes // 8 end
-- Columns of O whose products with a tile of keys are summed apart, which float32 adds to O: of sums of 8-bit numbers Hopper keeps 13
-- to 14 bits. As many as there are registers for, all parts of them alike; nil: all products go to O.
function shape.part_columns(plan)
  if not types.p.is_byte then return nil end
  local columns = shape.columns(spec.dv)
  return columns > 64 and columns <= 128 and columns // 2 or 32
end
-- Do the products with V of so many parts come before those that make S, whose registers the parts have?
function shape.values_come_first() return types.p.is_byte == true and shape.columns(spec.dv) > 128 end

-- Are heads too wide for a warpgroup to hold O of its rows (forward_wide.lua)?
shape.is_wide = run("attention/heads.lua").is_wide(spec)

-- The score's input of which each warp keeps its 16 rows of a tile, if there is one: it loads them itself, the next ones
-- when it has read the ones before. Where tiles are left out it would have to know which comes next.
function shape.tiled_input() return not shape.is_wide and not hooks.mask.has_gaps.keys and hooks.input.tiled or nil end

-- Does the score of a backward pass take hardly more registers than s itself?
function shape.score_is_light(traits)
  local differs_by_row = false -- a gradient does
  for _, x in ipairs(traits.input.grads) do differs_by_row = differs_by_row or x.kind == "dense" or x.kind == "rows" end
  return traits.ds_follows_from_p and not traits.input.differs_by_key and not differs_by_row
end

-- Has a forward's scale a place in shared memory, from where its weights take it tile by tile?
function shape.scale_has_a_place(traits) return traits.score.is_s and traits.norm.trial == nil end

-- Whether the last tiles of rows are taken in parts (parts.cut).
function shape.has_parts(plan) return (plan.key_parts or 0) > 1 end

-- Accumulators of rows of DV columns: O, and the normaliser's second one.
function shape.accumulators() return hooks.norm.beside and 2 or 1 end

-- A float32 O goes to memory as the threads have it: in the slot of Q, from where TMA takes a 16-bit one, it has no room.
shape.o_leaves_by_registers = types.o.name == "f32"

-- Four numbers each that the states of a thread's two rows take in a part.
function shape.state_chunks() return cdiv(2 * #hooks.norm.state, 4) end

return shape
