-- rows.lua: what the family and its text share: the normaliser of parts, and how many lanes have a row of one.
local rows = {
  norm = run("attention/normalizer.lua")(spec.normalizer),
  columns = 8, -- of a lane: 16 bytes of a 16-bit part, 32 of one in float32
  ahead = 4, -- parts whose loads are under way together
}

-- What the parts keep of a row, an input; nil: nothing.
rows.kept = rows.norm.second and rows.norm.second .. "_parts"

-- Is there a second accumulator, of which the parts have sums in float32, an input?
rows.beside = rows.norm.beside and rows.norm.beside.output .. "_parts"

-- Lanes that have the columns of a row that a block makes, a power of two, a warp at most; at least as many as parts are loaded
-- together, because these take their weights from as many lanes.
rows.lanes = rows.ahead
while rows.lanes < 32 and rows.lanes * rows.columns < spec.dv do rows.lanes = 2 * rows.lanes end

-- Blocks that make columns of the same rows.
rows.column_blocks = cdiv(spec.dv, rows.lanes * rows.columns)
rows.columns_are_split = rows.column_blocks > 1

rows.part_is_f32 = spec.parts_dtype == "f32" or types.o.name == "f32"
rows.type_of_parts, rows.bytes_of_parts = rows.part_is_f32 and "float" or types.o.ctype, rows.part_is_f32 and 4 or types.o.bytes

-- Do several lanes have the same columns, so that they share the parts?
function rows.are_shared(group) return group > rows.lanes end

return rows
