/* cuda_launch.h - encodes tensor maps and launches kernels through the CUDA driver. */
#ifndef FG_CUDA_LAUNCH_H
#define FG_CUDA_LAUNCH_H

#include "cuda.h"
#include "launch.h"

/* Encodes the tensor maps at the beginning of Params, which is aligned to 64 bytes. A map takes
 * about 0.1 us, so none is kept from launch to launch. FG_EARGUMENT: the driver refuses a map. */
fg_status fg_cuda_encode_maps(const fg_cuda *cuda, const fg_recipe *recipe, const fg_shape *shape,
                              const fg_args *args, void *workspace, void *params);

/* Sets how many clusters of a step's blocks the GPU runs at a time, fewer than its multiprocessors
 * would give where groups of these are no multiple of a cluster. FG_ECOMPILER: it runs none, as a
 * part of a GPU may, so that another plan is to be taken. */
fg_status fg_cuda_clusters(const fg_cuda *cuda, CUfunction function, const fg_step *step,
                           int *clusters);

/* Launches a step on the stream; a programmatic early start is left out where the driver cannot
 * capture it. */
fg_status fg_cuda_launch(const fg_cuda *cuda, CUfunction function, const fg_step *step,
                         const uint32_t grid[3], CUstream stream, void *params);

#endif
