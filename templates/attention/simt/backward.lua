-- backward.lua: the gradients of simt_forward, each with one writer and sums in a fixed order:
-- deterministic, without atomics and without an accumulator in memory. S is computed again in each
-- pass: 2 products more a gradient than a backward that shares it.
local family = { template = "attention/simt/backward.cut", library = { "tile/warp.cut", "tile/rows.cut", "tile/sequences.cut", "tile/slices.cut", "tile/dropout.cut" } }

local grads = run("attention/backward/input_grads.lua")
local pitch, simt = run("tile/rows.lua").pitch, run("attention/simt/simt.lua")

function family.applies(spec, arch)
  local why = hooks.norm.refused or grads.refused()
  return not why, why
end

-- As simt_forward's.
function family.candidates(spec, arch)
  return simt.candidates(family, spec, arch, {
    { block_q = 16, block_kv = 32, warps = 4, measured = { "TFLOP/s, b 4, h 16, n 4096, d 128", 7.8, 14.5 } },
    { block_q = 4, block_kv = 32, warps = 4, measured = { "us, b 1, h 4, n 128, d 128", 61, 40 } },
  })
end

function family.registers(spec, plan)
  return simt.registers(simt.lane_columns(spec.d) + simt.lane_columns(spec.dv), plan)
end

function family.shared(spec, plan)
  local rows_d = { "SM_ROW_D", plan.block_q * pitch(spec.d), "the block's rows of Q or K [BLOCK][D]" }
  local rows_dv = { "SM_ROW_DV", plan.block_q * pitch(spec.dv), "the block's rows of dO or V [BLOCK][DV]" }
  local weights = { "SM_W", plan.block_q * 32 * 4, "weights [BLOCK][32], float32, a warp's rows its own" }
  if simt.takes_turns(plan) then
    local widest = math.max(spec.d, spec.dv)
    return { rows_d, rows_dv, { "SM_LANE", 32 * pitch(widest), "32 rows, one a lane, of V or dO [32][DV], then of K or Q [32][D]" }, weights }
  end
  return {
    rows_d, rows_dv,
    { "SM_LANE_D", 32 * pitch(spec.d), "32 rows, one a lane, of K or Q [32][D]" },
    { "SM_LANE_DV", 32 * pitch(spec.dv), "32 rows, one a lane, of V or dO [32][DV]" },
    weights,
  }
end

-- Blocks of the pass that makes an input's gradient: one a tile of the gradient's own extents.
local function gradient_grid(extents, block_q)
  local axes = { b = "b", h = "h", q = seq.count_tiles("q", block_q), k = seq.count_tiles("k", 32) }
  local factors = {}
  for axis in extents:gmatch("[bhqk]") do factors[#factors + 1] = axes[axis] end
  return #factors > 0 and table.concat(factors, " * ") or "1"
end

function family.describe(spec, plan)
  local threads, block_q = 32 * plan.warps, plan.block_q
  local function step(entry, blocks, length)
    return { entry = entry, grid = { blocks, "1", "1" }, threads = threads, registers = family.registers(spec, plan), work = simt.work(length, plan) }
  end
  local inputs, outputs = { "q", "k", "v" }, { "dq", "dk", "dv" }
  local steps = {
    step("attn_bwd_delta", string.format("cdiv(%s, %d)", seq.kept_rows, plan.warps), "1"),
    step("attn_bwd_dk_dv", string.format("%s * hk * %s", seq.count_tiles("k", block_q), seq.batches("k")), "nq * h / max(hk, 1)"),
    step("attn_bwd_dq", string.format("%s * h * %s", seq.count_tiles("q", block_q), seq.batches("q")), "nk"),
  }
  for _, name in ipairs(hooks.input.names) do inputs[#inputs + 1] = name end
  -- Inputs that are read by an index of the pair are summed in memory, by the pass that makes dQ.
  -- In a deterministic kernel an element goes over the pairs that read it.
  for _, x in ipairs(hooks.input.grads) do
    outputs[#outputs + 1] = x.output
    -- spot "simt.backward.order"
    x.summed = x.kind == "indexed" and spec.deterministic == "false"
    steps[#steps + 1] = x.summed and grads.finish_step(x, threads) or
      x.kind == "indexed" and step("attn_bwd_" .. x.output, string.format("cdiv(%s, %d)", x.count, plan.warps), "b * h * nk") or
      step("attn_bwd_" .. x.output, gradient_grid(x.extents, block_q), "b * h * nk")
  end
  run("attention/backward/passes.lua").add_heads(steps, threads)
  local regions = { { name = "delta", count = seq.kept_rows } }
  grads.add_regions(regions, steps)
  for _, x in ipairs(hooks.norm.head_grads) do outputs[#outputs + 1] = x.output end
  for _, name in ipairs(hooks.norm.backward_inputs) do inputs[#inputs + 1] = name end
  for _, name in ipairs(seq.inputs) do inputs[#inputs + 1] = name end
  local description = {
    about = string.format("Gradients of O = %s(score(scale Q K^T)) V, from dO.", hooks.norm.about),
    align = 2,
    inputs = inputs,
    outputs = outputs,
    regions = regions,
    steps = steps,
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v and o" },
      { "BLOCK", block_q, "rows of a block: queries, or keys where dK and dV are made" },
      { "ROWS", block_q // plan.warps, "rows of a warp" },
      { "LANE_D", simt.lane_columns(spec.d), "columns that a lane holds of each row of dQ or dK" },
      { "LANE_DV", simt.lane_columns(spec.dv), "the same of dV" },
      { "WARPS", plan.warps },
      { "THREADS", threads },
      { "PITCH_D", pitch(spec.d), "bytes between rows of Q and K tiles" },
      { "PITCH_DV", pitch(spec.dv), "bytes between rows of V and dO tiles" },
    },
    shared = family.shared(spec, plan),
  }
  if seq.slices then
    seq.slices.add_list(description, "q", block_q, "row_slices")
    seq.slices.add_list(description, "k", block_q, "key_slices")
  end
  return description
end

return family
