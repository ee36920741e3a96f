-- target.lua (ptx): how CUDA names an entry point.
return {
  kernel = function(name, threads)
    return string.format('extern "C" __global__ void __launch_bounds__(%d)\n%s(const __grid_constant__ Params p)',
                         threads, name)
  end,
  finish = function() return "" end,
}
