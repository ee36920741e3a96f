-- target.lua (ptx): how CUDA names an entry point.
-- One block a multiprocessor is the least that is asked for: without that number ptxas spills a few bytes to
-- reach the next occupancy step (NVRTC 13.0, sm_80 to sm_100: simt backward at 72 and 80 registers).
return {
  kernel = function(name, threads, blocks)
    return string.format('extern "C" __global__ void __launch_bounds__(%d, %d)\n%s(const __grid_constant__ Params p)',
                         threads, blocks, name)
  end,
  finish = function() return "" end,
}
