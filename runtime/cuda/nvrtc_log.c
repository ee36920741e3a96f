/* nvrtc_log.c - reads figures and warnings of a cubin from the compiler's log. */
#include "nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the lines of ptxas -v, CUDA 12 and 13: "Compiling entry function 'x'", then "N bytes stack
 * frame, N bytes spill stores, N bytes spill loads", then "Used N registers". */
void fg_cubin_read_log(fg_cubin *cubin, const char *text) {
  fg_figures *entry = NULL;
  for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
    char copy[512];
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
    const char *at = strstr(copy, "Compiling entry function '");
    if (at && cubin->n_entries < FG_FIGURES_MAX) {
      entry = &cubin->entry[cubin->n_entries++];
      sscanf(at + 26, "%47[^']", entry->entry);
    }
    int stack, stores, loads, registers;
    if ((at = strstr(copy, " bytes stack frame")) && entry) {
      while (at > copy && at[-1] >= '0' && at[-1] <= '9') at--;
      if (sscanf(at, "%d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stack,
                 &stores, &loads) == 3)
        entry->stack_bytes = stack, entry->spill_bytes = stores + loads;
    }
    if ((at = strstr(copy, "Used ")) && entry && sscanf(at, "Used %d registers", &registers) == 1)
      entry->registers = registers;
    if ((strstr(copy, "warning") || strstr(copy, "(C75")) && !*cubin->warning)
      snprintf(cubin->warning, sizeof cubin->warning, "%.500s", copy);
  }
}

void fg_cubin_free(fg_cubin *cubin) {
  free(cubin->data);
  *cubin = (fg_cubin){0};
}

fg_status fg_cubin_accept(const char *name, const fg_cubin *cubin) {
  for (int i = 0; i < cubin->n_entries; i++)
    if (cubin->entry[i].spill_bytes)
      return fg_fail(FG_ECOMPILER, "%s: %s spills %d bytes with %d registers", name,
                     cubin->entry[i].entry, cubin->entry[i].spill_bytes, cubin->entry[i].registers);
  return *cubin->warning ? fg_fail(FG_ECOMPILER, "%s: %s", name, cubin->warning) : FG_OK;
}
