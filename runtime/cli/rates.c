/* rates.c - what the GPUs that we measured on reach. No datasheet figure is reached by anything. */
#include "measure.h"

#include <string.h>

static const cli_rates table[] = {
    {"NVIDIA H200", 785, 4.2, "driver 580.159, CUDA 13.0, 2026-11-20"}};

const cli_rates *cli_rates_of(const char *model) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].gpu, model)) return &table[i];
  return NULL;
}
