-- forward.lua: attention for any spec and arch, without tensor cores: the fallback, and the
-- kernel that others are compared with. A warp owns `rows` query rows; each lane one key of a tile.
local family = { template = "attention/simt/forward.cut", library = { "tile/warp.cut", "tile/rows.cut", "tile/sequences.cut", "tile/slices.cut", "tile/dropout.cut" } }

local pitch, simt = run("tile/rows.lua").pitch, run("attention/simt/simt.lua")

function family.applies(spec, arch) return not hooks.norm.refused, hooks.norm.refused end

-- Four rows a warp use each key that a lane has loaded four times; one row a warp leaves short problems
-- more blocks. measured: what, without and with the plan (H200, bf16, full).
function family.candidates(spec, arch)
  return simt.candidates(family, spec, arch, {
    { block_q = 16, block_kv = 32, warps = 4, measured = { "TFLOP/s, b 4, h 16, n 4096, d 128", 8.4, 17.9 } },
    { block_q = 4, block_kv = 32, warps = 4, measured = { "us, b 1, h 4, n 128, d 128", 22, 16 } },
  })
end

function family.registers(spec, plan)
  return simt.registers((hooks.norm.beside and 2 or 1) * simt.lane_columns(spec.dv), plan)
end

function family.shared(spec, plan)
  local q = { "SM_Q", plan.block_q * pitch(spec.d), "Q [BLOCK_Q][D]" }
  local weights = { "SM_P", plan.block_q * 32 * 4, "P [BLOCK_Q][32], float32, a warp's rows its own" }
  if simt.takes_turns(plan) then
    return { q, { "SM_KV", 32 * pitch(math.max(spec.d, spec.dv)), "K [32][D], then V [32][DV]" }, weights }
  end
  return { q, { "SM_K", 32 * pitch(spec.d), "K [32][D]" }, { "SM_V", 32 * pitch(spec.dv), "V [32][DV]" }, weights }
end

function family.describe(spec, plan)
  local inputs = { "q", "k", "v" }
  for _, name in ipairs(hooks.input.names) do inputs[#inputs + 1] = name end
  for _, name in ipairs(hooks.norm.inputs) do inputs[#inputs + 1] = name end
  for _, name in ipairs(seq.inputs) do inputs[#inputs + 1] = name end
  local description = {
    about = string.format("O = %s(score(scale Q K^T)) V%s.", hooks.norm.about, hooks.norm.second_in_words),
    align = 2,
    inputs = inputs,
    outputs = hooks.norm.outputs,
    regions = {},
    steps = {
      { entry = "attn_fwd", grid = { string.format("%s * h * %s", seq.count_tiles("q", plan.block_q), seq.batches("q")), "1", "1" },
        threads = 32 * plan.warps, registers = family.registers(spec, plan), work = simt.work("nk", plan) },
    },
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v and o" },
      { "BLOCK_Q", plan.block_q, "query rows of a block" },
      { "ROWS", plan.block_q // plan.warps, "query rows of a warp" },
      { "LANE_DV", simt.lane_columns(spec.dv), "columns of O that a lane holds of each row" },
      { "THREADS", 32 * plan.warps },
      { "PITCH_D", pitch(spec.d), "bytes between rows of Q and K tiles" },
      { "PITCH_DV", pitch(spec.dv), "bytes between rows of V tiles" },
    },
    shared = family.shared(spec, plan),
  }
  run("attention/max_logit.lua").add_step(description.steps)
  if seq.slices then seq.slices.add_list(description, "q", plan.block_q, "row_slices") end
  return description
end

return family
