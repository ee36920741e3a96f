/* arch.c - the table of architectures. */
#include "arch.h"

#include "base/spelling.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shared memory by the CUDA programming guide's table of compute capabilities. From 9.0 on a
 * GPU is given the code that no other GPU takes ("sm_90a"): other code has no wgmma. */
enum {
  SINCE_AMPERE = FG_HAS_BF16 | FG_HAS_MMA,
  SINCE_HOPPER =
      SINCE_AMPERE | FG_HAS_E4M3 | FG_HAS_RED_V4 | FG_HAS_PDL | FG_HAS_CLUSTER | FG_HAS_TMA,
  AMPERE = SINCE_AMPERE | FG_HAS_AMPERE_CODE,
  HOPPER = SINCE_HOPPER | FG_HAS_HOPPER_CODE | FG_HAS_WGMMA,
  BLACKWELL = SINCE_HOPPER | FG_HAS_BLACKWELL_CODE
};
const fg_arch fg_archs[] = {
    {"host", 90, FG_ARCH_HOST_BLOCK_KB, 228, HOPPER | FG_HAS_ENGINE,
     "the host device, on any machine"},
    {"sm_75", 75, 64, 64, 0, "T4, RTX 20"},
    {"sm_80", 80, 163, 164, AMPERE, "A100, A30"},
    {"sm_86", 86, 99, 100, AMPERE, "A10, A40, RTX A6000, RTX 30"},
    {"sm_87", 87, 163, 164, AMPERE, "Jetson Orin"},
    {"sm_89", 89, 99, 100, AMPERE | FG_HAS_E4M3, "L4, L40, RTX 6000 Ada, RTX 40"},
    {"sm_90a", 90, 227, 228, HOPPER, "H100, H200, GH200"},
    {"sm_100a", 100, 227, 228, BLACKWELL, "B200, GB200"},
    {"sm_103a", 103, 227, 228, BLACKWELL, "B300, GB300"},
    {"sm_110a", 110, 227, 228, BLACKWELL, "Jetson Thor"},
    {"sm_120a", 120, 99, 100, BLACKWELL, "RTX PRO 6000 Blackwell, RTX 50"},
    {"sm_121a", 121, 99, 100, BLACKWELL, "GB10 (DGX Spark)"},
};
const int fg_n_archs = sizeof fg_archs / sizeof *fg_archs;

const fg_feature_name fg_feature_names[] = {{"bf16", FG_HAS_BF16},
                                            {"mma", FG_HAS_MMA},
                                            {"e4m3", FG_HAS_E4M3},
                                            {"red_v4", FG_HAS_RED_V4},
                                            {"pdl", FG_HAS_PDL},
                                            {"cluster", FG_HAS_CLUSTER},
                                            {"tma", FG_HAS_TMA},
                                            {"wgmma", FG_HAS_WGMMA},
                                            {"engine", FG_HAS_ENGINE},
                                            {"ampere", FG_HAS_AMPERE_CODE},
                                            {"hopper", FG_HAS_HOPPER_CODE},
                                            {"blackwell", FG_HAS_BLACKWELL_CODE},
                                            {NULL, 0}};

const fg_arch *fg_arch_find(const char *name) {
  for (int i = 0; i < fg_n_archs; i++)
    if (!strcmp(fg_archs[i].name, name)) return &fg_archs[i];
  return NULL;
}

/* The row of a GPU's number; the host device's row does not count. */
static const fg_arch *find_number(int number) {
  for (int i = 0; i < fg_n_archs; i++)
    if (fg_archs[i].number == number && !fg_arch_has(&fg_archs[i], FG_HAS_ENGINE))
      return &fg_archs[i];
  return NULL;
}

const fg_arch *fg_arch_of(int major, int minor) { return find_number(10 * major + minor); }

bool fg_arch_is_host(const char *name) {
  const fg_arch *arch = fg_arch_find(name);
  return arch && fg_arch_has(arch, FG_HAS_ENGINE);
}

int fg_arch_cluster_threads(const fg_arch *arch) {
  return fg_arch_has(arch, FG_HAS_ENGINE) ? FG_ARCH_HOST_CLUSTER_THREADS : 8 * 1024;
}

const char *fg_arch_families(const fg_arch *arch) {
  if (fg_arch_has(arch, FG_HAS_WGMMA)) return "wgmma, mma, decode, simt";
  return fg_arch_has(arch, FG_HAS_MMA) ? "mma, decode, simt" : "simt";
}

int fg_arch_names(size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < fg_n_archs; i++)
    n = fg_append(size, text, n, "%s%s", i ? ", " : "", fg_archs[i].name);
  return n;
}

/* The arch that a wrong name may mean: for "sm_90" and "90" by the number, for "Host" by the
 * letters. */
static const char *near_to(const char *name) {
  const char *digits = name + strcspn(name, "0123456789");
  const fg_arch *same = strlen(digits) < 8 ? find_number(atoi(digits)) : NULL;
  const char *host = fg_archs[0].name;
  return *digits ? (same ? same->name : NULL) : fg_nearest(name, &host, 1);
}

/* The sentence lists the archs, and names the one that may be meant. */
fg_status fg_arch_check(const char *name) {
  char known[256];
  if (fg_arch_find(name)) return FG_OK;
  const char *near = near_to(name);
  fg_arch_names(sizeof known, known);
  return fg_fail(FG_EARGUMENT, "arch \"%.32s\" is not known; expected one of %s%s%s%s", name, known,
                 near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

/* A comma that ends the list stays in it, and the next call refuses the arch without a name. */
fg_status fg_arch_take(const char **list, char arch[FG_ARCH_MAX]) {
  const char *at = *list;
  size_t n = strcspn(at, ",");
  char word[FG_ARCH_MAX];
  snprintf(word, sizeof word, "%.*s", (int)n, at);
  if (n >= sizeof word) return fg_arch_check(at);
  TRY(fg_arch_check(word));
  strcpy(arch, word);
  *list = at + n + (at[n] == ',' && at[n + 1]);
  return FG_OK;
}
