/* fake_cuda.h - a driver with one GPU that computes nothing: what flashgen makes of the driver's
 * answers, on a machine without one.
 *
 * fake_cuda.c is a libcuda.so.1: a program that links it has it in the process before flashgen asks
 * the loader for that name. Memory of the GPU is the host's; launches are counted. */
#ifndef FG_TESTS_FAKE_CUDA_H
#define FG_TESTS_FAKE_CUDA_H

#include "cuda/cuda.h"

extern struct fake_cuda {
  const char *call;      /* fails, NULL: none does */
  CUresult result;       /* with this, */
  int times;             /* so many times; then nothing fails */
  unsigned long long id; /* of the GPU's context */
  int another;           /* a context of the application's is current, not the GPU's */
  int launches, loads, unloads, sets;
  unsigned grid[3];    /* of the last launch */
  int clusters;        /* that fit at a time */
  unsigned attributes; /* of the last extended launch, and the last tensor map that was made */
  cu_launch_attribute attribute[2];
  struct fake_map {
    int type, swizzle, l2;
    unsigned rank, box[5];
    void *base;
    cu_uint64 extent[5], stride[4];
  } map;
} fake_cuda;

#endif
