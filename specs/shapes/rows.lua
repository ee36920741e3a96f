-- rows.lua: shapes for specs/rows.lua and specs/linear.lua: tokens of a batch.
return { { rows = 256 }, { rows = 4096 }, { rows = 16384 } }
