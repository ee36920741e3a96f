/* t_tune_hooks.c - `flashgen tune` of specs with scores, masks and biases: numbers of words,
 * tensors, gradients, both passes; and what the library then chooses. */
#include "reference/npy.h"
#include "scratch.h"
#include "tune_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_npy(const char *name, int rank, const int64_t *extents) {
  static float values[1 << 12];
  for (int i = 0; i < 1 << 12; i++) values[i] = (float)(i % 7) / 8;
  ck_assert_int_eq(fg_npy_write(name, rank, extents, values), FG_OK);
}

/* What `run` then takes is what the file says is fastest for the specs of the pass with a slope and
 * a bias, at the shape that was measured. */
static void goes_by(const char *pass, const char *bias, const char *files) {
  fg_measured_list list = tune_list("w.txt");
  char command[1024], taken[512];
  int at = 0;
  while (at < list.n && (!strstr(list.item[at]->name, bias) ||
                         !strstr(list.item[at]->expression, "slope[h] * float(k - p)") ||
                         list.item[at]->shape.nk != 130))
    at++;
  ck_assert_msg(at < list.n, "%s", bias);
  const fg_measured *m = list.item[at];
  ck_assert(fg_measured_counts(m));
  snprintf(taken, sizeof taken, ": dispatch: b1 h1/1 1x130 %.*s: taken, %.4g ms, 1 times the least",
           (int)(strlen(m->name) - strlen(".host")), m->name, m->ms);
  snprintf(command, sizeof command,
           "FLASHGEN_WISDOM=w.txt FLASHGEN_VERBOSE=dispatch " FLASHGEN_PROGRAM
           " run pass=%s head_dim=16 'mask=window(width, 0)' 'score=softcap(alibi(slope), cap)' "
           "inputs.width=int inputs.cap=float 'inputs.slope=f32[h] grad' bias=grad "
           "bias_dims=h,q,k width=20 cap=20 family=mma --device host --in q=q.npy --in k=k.npy "
           "--in v=k.npy --in slope=s.npy --in bias=b.npy %s > out.txt 2> err.txt",
           pass, files);
  const int code = system(command);
  const char *err = program_text("err.txt");
  ck_assert_msg(code == 0, "%s", err);
  program_says(err, taken);
  fg_measured_free(&list);
}

TEST(hooks) {
  static const char spec[] =
      "return { head_dim = 16, pass = { 'forward', 'backward' }, mask = 'window(width, 0)',\n"
      "  score = { 'softcap(alibi(slope), cap)', 'relative(table)' }, bias = { false, 'grad' },\n"
      "  bias_dims = 'h,q,k', inputs = { width = 'int', cap = 'float', slope = 'f32[h] grad',\n"
      "    table = 'f32[h, nq + nk - 1] grad' } }";
  scratch_put("s.lua", spec, sizeof spec - 1);
  program_result r =
      program_gives(0, "tune s.lua family=mma block_q=64 block_kv=64 --shapes " SHAPES
                       " --device host --wisdom w.txt width=20 cap=20 -q");
  program_says(r.out, "\n16 of 16 cells finished, 16 with a best plan; w.txt\n");
  ck_assert_int_eq(tune_having("w.txt", FG_MEASURED_WRONG, NULL), 0);
  put_npy("q.npy", 4, (const int64_t[]){1, 1, 1, 16});
  put_npy("k.npy", 4, (const int64_t[]){1, 130, 1, 16});
  put_npy("s.npy", 1, (const int64_t[]){1});
  put_npy("b.npy", 4, (const int64_t[]){1, 1, 1, 130});
  goes_by("forward", "-bias_hqk.", "--out o=o.npy");
  goes_by("backward", "-biasgrad_hqk.",
          "--in do=q.npy --out dq=dq.npy --out dbias=db.npy --out dslope=ds.npy");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
