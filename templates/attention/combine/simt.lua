-- simt.lua: rows of O over parts of the keys, each finished by itself, to the rows over all keys (mathematics.md section 2), on any
-- arch. GROUP lanes of a warp share a row; LANES of them have all its columns, or those of a block that makes some of many, and
-- where GROUP is more, each LANES have some of the parts.
local rows = run("attention/combine/rows.lua")
local norm = rows.norm

local function candidates()
  local plans = { { block_q = 128 // rows.lanes, warps = 4 } } -- a warp has as many rows as it can
  if rows.lanes < 32 then plans[2] = { block_q = 4, warps = 4 } end -- it has one
  plans[#plans + 1] = { block_q = 1, warps = 1 } -- rows are few, and each is on a multiprocessor of its own
  return plans
end

-- The work of a block: of each warp what comes before its first part and behind its last one, and its parts one after another.
local function describe(spec, plan)
  local group, inputs = 32 * plan.warps // plan.block_q, { "o_parts" }
  for _, name in ipairs({ rows.kept or false, rows.beside or false, table.unpack(norm.inputs) }) do inputs[#inputs + 1] = name or nil end
  return {
    about = string.format("O%s of rows whose keys are in parts (%s).", norm.second and " and " .. norm.second or "", norm.about),
    align = 2,
    inputs = inputs,
    outputs = norm.outputs,
    regions = {},
    steps = {
      { entry = "combine", grid = { string.format("cdiv(b * nq * h, %d)", plan.block_q), tostring(rows.column_blocks), "1" }, threads = 32 * plan.warps,
        registers = 64, work = string.format("%d * (16 + cdiv(parts, %d))", plan.warps, group // rows.lanes) },
    },
    constants = {
      { "DV", spec.dv, "columns of a row" },
      { "ROWS", plan.block_q, "rows of a block" },
      { "GROUP", group, "lanes that share a row" },
      { "LANES", rows.lanes, string.format("lanes that have its columns%s, %d each", rows.columns_are_split and " in a block" or "", rows.columns) },
      { "AHEAD", rows.ahead, "parts whose loads are under way together" },
    },
    shared = {},
  }
end

return {
  template = "attention/combine/simt.cut", library = { "attention/combine/columns.cut" },
  applies = function()
    if norm.refused then return false, norm.refused end
    return norm.resume ~= nil, string.format("normalizer=%s keeps too little of a row to go on from it", spec.normalizer)
  end,
  candidates = candidates, describe = describe,
}
