/* cuda_launch.h - tensor maps and launches as the CUDA driver takes them. */
#ifndef FG_CUDA_LAUNCH_H
#define FG_CUDA_LAUNCH_H

#include "cuda.h"
#include "launch.h"

/* Fills the tensor maps of Params, which is aligned to 64 bytes: about 0.1 us each, so none is kept
 * from launch to launch. */
fg_status fg_cuda_encode_maps(const fg_cuda *cuda, const fg_recipe *recipe, const fg_shape *shape,
                              const fg_args *args, void *params);

/* Launches a step; `what` is for messages. */
fg_status fg_cuda_launch(const fg_cuda *cuda, CUfunction function, const fg_step *step,
                         const uint32_t grid[3], CUstream stream, void *params);

#endif
