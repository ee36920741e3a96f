/* t_wgmma_sass.c - the machine code of wgmma's main loops: products take their descriptors from
 * uniform registers that stay there. Each R2UR in the loop costs the products that wait for it.
 *
 * Label compile. Needs libnvrtc and cuobjdump (PATH, $CUDA_HOME/bin, /usr/local/cuda/bin); where
 * one is missing only the reader of machine code is tested. */
#include "compile_case.h"
#include "suite.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIP = 77, THREADS = 2, MOST = 1 << 16, PATH = 4096 };

static const fg_nvrtc *nvrtc;
static char cuobjdump[PATH];

/* What is shipped for the head dims that are tuned, a mask or none: all plans of each. */
static const char shipped[] = "family=wgmma pass=forward mask=full,causal "
                              "head_dim=64,96,128,192,192/128,256 dtype=bf16,f16";

typedef struct instruction {
  unsigned at, branch; /* of a jump that depends on a predicate, where to; else 0 */
  int product, move;
} instruction;

typedef struct verdict {
  int loops, moves; /* loops that have products and end in a test; R2UR in them */
} verdict;

/* "        [/]*0cd0*[/]               @P0 BRA 0x4160 ;  ..." */
static int read_line(const char *line, instruction *to) {
  int behind = 0;
  if (sscanf(line, " /*%x*/%n", &to->at, &behind) != 1 || !behind) return 0;
  const char *text = line + behind + strspn(line + behind, " \t"), *jump = strstr(text, "BRA 0x");
  if (*text == '/') return 0; /* the second half of an encoding */
  to->product = strstr(text, "HGMMA") != NULL;
  to->move = strstr(text, "R2UR") != NULL;
  to->branch = *text == '@' && jump ? (unsigned)strtoul(jump + 4, NULL, 16) : 0;
  return 1;
}

static void judge_loop(const instruction *code, int last, verdict *v) {
  int products = 0, moves = 0;
  for (int i = last; i >= 0 && code[i].at >= code[last].branch; i--) {
    products += code[i].product;
    moves += code[i].move;
  }
  if (!products) return;
  v->loops++;
  v->moves += moves;
}

static verdict read_code(FILE *file) {
  instruction *code = calloc(MOST, sizeof *code);
  verdict v = {0};
  char line[512];
  int n = 0;
  ck_assert_ptr_nonnull(code);
  while (fgets(line, sizeof line, file) && n < MOST) n += read_line(line, &code[n]);
  ck_assert_int_lt(n, MOST);
  for (int i = 0; i < n; i++)
    if (code[i].branch && code[i].branch < code[i].at) judge_loop(code, i, &v);
  free(code);
  return v;
}

START_TEST(reader_counts_moves_in_loops) {
  char text[] = "\t.headerflags\t@\"EF_CUDA\"\n"
                "        /*0000*/                   R2UR UR4, R0 ;      /* 0x00 */\n"
                "                                                       /* 0x00 */\n"
                "        /*0010*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4] ;\n"
                "        /*0020*/              @!P1 R2UR UR5, R1 ;      /* 0x00 */\n"
                "        /*0030*/               @P0 BRA 0x10 ;          /* 0x00 */\n"
                "        /*0040*/                   R2UR UR4, R0 ;      /* 0x00 */\n"
                "        /*0050*/               @P0 BRA 0x40 ;          /* 0x00 */\n"
                "        /*0060*/                   BRA 0x0 ;           /* 0x00 */\n";
  FILE *file = fmemopen(text, strlen(text), "r");
  ck_assert_ptr_nonnull(file);
  verdict v = read_code(file);
  fclose(file);
  ck_assert_int_eq(v.loops, 1);
  ck_assert_int_eq(v.moves, 1);
}
END_TEST

static verdict disassemble(const compile_one *one) {
  char path[] = "/tmp/flashgen-sass-XXXXXX", command[PATH + 64];
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, one->cubin.data, one->cubin.size), (ssize_t)one->cubin.size);
  close(fd);
  snprintf(command, sizeof command, "'%s' -sass %s", cuobjdump, path);
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  verdict v = read_code(pipe);
  ck_assert_msg(pclose(pipe) == 0, "%s: it failed", command);
  unlink(path);
  return v;
}

START_TEST(no_main_loop_moves_descriptors) {
  compile_list all = {0};
  fg_variant *list;
  fg_gen *gen;
  int n, wrong = 0;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(words_variants(gen, shipped, "sm_90a", 0, &list, &n) == FG_OK, "%s", fg_error());
  ck_assert_msg(compile_add(&all, gen, n, list) == FG_OK, "%s", fg_error());
  ck_assert_msg(compile_run(nvrtc, &all, THREADS) == FG_OK, "%s", fg_error());
  for (int i = 0; i < all.n; i++) {
    ck_assert_msg(all.list[i].status == FG_OK, "%s: %s", all.list[i].name, all.list[i].error);
    verdict v = disassemble(&all.list[i]);
    if (v.loops && !v.moves) continue;
    fprintf(stderr, "%s: %d loops with products, %d R2UR in them\n", all.list[i].name, v.loops,
            v.moves);
    wrong++;
  }
  ck_assert_msg(!wrong, "of %d kernels %d are not right", all.n, wrong);
  compile_free(&all);
  free(list);
  fg_gen_free(gen);
}
END_TEST

static int find_in(const char *directory, size_t length) {
  snprintf(cuobjdump, sizeof cuobjdump, "%.*s/cuobjdump", (int)length, directory);
  return access(cuobjdump, X_OK) == 0;
}

static int find_cuobjdump(void) {
  const char *home = getenv("CUDA_HOME"), *path = getenv("PATH");
  char directory[PATH];
  for (const char *at = path ? path : ""; *at;) {
    size_t length = strcspn(at, ":");
    if (find_in(at, length)) return 1;
    at += length + (at[length] == ':');
  }
  snprintf(directory, sizeof directory, "%s/bin", home ? home : "");
  if (home && find_in(directory, strlen(directory))) return 1;
  return find_in("/usr/local/cuda/bin", strlen("/usr/local/cuda/bin"));
}

int main(void) {
  bool have = find_cuobjdump() && fg_nvrtc_load(&nvrtc) == FG_OK;
  Suite *suite = suite_create("wgmma sass");
  TCase *tests = tcase_create("wgmma sass");
  suite_add(tests, reader_counts_moves_in_loops);
  if (have) suite_add(tests, no_main_loop_moves_descriptors);
  suite_add_tcase(suite, tests);
  int failed = suite_run(suite);
  if (failed || have) return failed;
  fprintf(stderr, "no cuobjdump or no libnvrtc: no kernel is looked at\n");
  return SKIP;
}
