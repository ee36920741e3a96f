-- max_logit.lua: the largest scaled product of a head's visible pairs (mathematics.md section 2), for families that make it: each thread keeps
-- that of each of its rows, and a warp adds those of its rows to the output, one atomic maximum each.
local most = {}

-- The step that the family's own stands behind: no pair has been seen.
function most.add_step(steps)
  if hooks.max_logit then
    table.insert(steps, 1, { entry = "attn_max_logit", grid = { "cdiv(b * h, 256)", "1", "1" }, threads = 256, registers = 16, work = "1", shared = {} })
  end
end

return most
