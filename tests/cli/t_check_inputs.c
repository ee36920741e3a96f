/* t_check_inputs.c - what `flashgen check` gives kernels: integers drawn by their use, values of
 * files, and what it says where nothing comes of them. */
#include "json.h"
#include "program.h"
#include "scratch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The share of pairs that a mask shows, in percent. */
static double sees(const char *format, ...) __attribute__((format(printf, 1, 2)));

static double sees(const char *format, ...) {
  char words[256];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  program_result r = program_gives(0, "check family=simt head_dim=16 -q --seed 5 %s", words);
  const char *at = strstr(r.out, "  sees ");
  ck_assert_ptr_nonnull(at);
  return strtod(at + strlen("  sees "), NULL);
}

/* Whatever integers are used for, some pairs are seen and some are not, and indices stay in their
 * tensors. */
TEST(integers_by_use) {
  static const char *const words[] = {
      "mask=k<n[b] inputs.n=i32[b]",
      "mask=k<16*n[b] inputs.n=i32[b]",
      "mask=k/16<n[b,h] inputs.n=i32[b,h]",
      "mask=prefix(n[b]) inputs.n=i32[b]",
      "mask=k==n[b,q]||n[b,q]<q inputs.n=i32[b,q]",
      "mask=document(ids) inputs.ids=i32[b,k]",
      "mask=q_ids[b,q]==k_ids[b,k] inputs.q_ids=i32[b,q] inputs.k_ids=i32[b,k]",
      "mask=document(starts,ends) inputs.starts=i32[b,k] inputs.ends=i32[b,k]",
      "mask=ids[k]>=0&&ids[k]>=ids[q*nk/nq] inputs.ids=i32[k]",
      "mask=use[b,k]!=0 inputs.use=i32[b,k]",
      "mask=kind[h]==3||k<=p inputs.kind=i32[h]",
      "mask=k<n[group[b]] inputs.n=i32[3] inputs.group=i32[b]",
  };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const double share = sees("%s", words[i]);
    ck_assert_msg(share > 5 && share < 98, "%s: sees %g%%", words[i], share);
  }
  sees("score=s+t[map[q],k-start[b]+8] inputs.t=f32[17,nk+16] inputs.map=i32[q] "
       "inputs.start=i32[b]");
  sees("score=s+t[h,i] inputs.t=f32[h,7] inputs.i=int");
  ck_assert_double_eq(sees("mask=full"), 100);
}

/* A mask that shows nothing leaves nothing to judge, which is not right numbers. */
TEST(nothing_seen) {
  program_result r =
      program_gives(1, "check family=simt head_dim=8,16 mask=k<n inputs.n=int n=0 -q");
  ck_assert_int_eq(program_count(r.out, "EMPTY  attn_fwd-bf16-d"), 2);
  program_says(r.out,
               "  sees 0% of pairs\n      the mask shows no pair of a row and a key in any of "
               "6 cases, so that nothing was judged: give inputs that show some, as NAME=X or "
               "--in NAME=FILE\n");
  program_says(r.out, ": 0 failed, 0 wrong, 2 empty\n");
  r = program_gives(1, "check family=simt head_dim=8 mask=k<n inputs.n=int n=0 -q --json");
  json_whole(r.out);
  program_says(r.out,
               "\"result\": \"EMPTY\", \"cases\": 6, \"signal\": 0, \"seen\": 0, \"text\": ");
  program_says(r.out, "\"wrong\": 0, \"empty\": 1}\n");
  r = program_gives(1, "check family=simt head_dim=8 score=s+log(0.0*k) -q");
  program_says(r.out, "EMPTY");
  program_says(r.out,
               "      the exact outputs are 0 in all of 6 cases, so that nothing was judged\n");
  program_gives(0, "check family=simt head_dim=8 b=1 h=1 nq=5 nk=0 -q");
}

/* Cases show enough for most of what a kernel does to be judged, whatever the seed: bounds that a
 * mask compares keys with, and slices. */
TEST_TENTH(enough_is_seen, 6) {
  const int seed = 2 * _i;
  const double of_first = sees("mask=k<=p&&k>=first[b] inputs.first=i32[b] b=1 h=1 nq=64 nk=96 "
                               "--seed %d",
                               seed);
  const double of_slices = sees("slices=true b=1 h=1 nq=96 nk=96 --seed %d", seed);
  ck_assert_msg(of_first > 2, "seed %d: bounds show %g%%", seed, of_first);
  ck_assert_msg(of_slices > 7, "seed %d: slices show %g%%", seed, of_slices);
}

/* A range that does not hold wherever its test does, whether a tile is hidden by it or not, and
 * whether the case's integers break it or others would; and ranges that hold. */
static const struct {
  int code;
  const char *words;
} claims[] = {
    {4, "mask=given(k<=p,prefix(n[b])) inputs.n=i32[b] --seed 7"},
    {4, "mask=given(k<=p,prefix(n[b])) inputs.n=i32[b] --seed 2544555146"},
    {4, "mask=given(k<=p,k<n||k<=p) inputs.n=int --seed 3"},
    {4, "mask=given(k<=p,ids[b,q]==ids2[b,k]) inputs.ids=i32[b,q] inputs.ids2=i32[b,k]"},
    {4, "mask=given(k<n[b],k==0) inputs.n=i32[b] --seed 1"},
    {0, "mask=given(k<=p,k<=p&&prefix(n[b])) inputs.n=i32[b] --seed 7"},
    {0, "mask=given(k>=0,ids[b,q]==ids2[b,k]) inputs.ids=i32[b,q] inputs.ids2=i32[b,k]"},
};
enum { CLAIMS = sizeof claims / sizeof *claims };

TEST_TENTH(false_claims, CLAIMS) {
  program_result r = program_gives(
      claims[_i].code, "check family=simt head_dim=16 b=2 h=1 nq=16 nk=16 -q %s", claims[_i].words);
  if (claims[_i].code)
    program_says(r.out, ": the range of given(range, test) does not hold wherever its test does\n");
}

/* dO is drawn so large that gradients of f16 are numbers of full precision; where that is not
 * enough, or a scale of 0 leaves nothing, it is said. */
TEST(judged_nothing) {
  static const char f16[] = "check family=simt pass=backward head_dim=8 dtype=f16 normalizer=none "
                            "b=1 h=1 nq=3 nk=5 -q scale=%s";
  ck_assert_ptr_null(strstr(program_gives(0, f16, "1e-6").out, "judged nothing"));
  program_says(program_gives(1, f16, "1e-10").out, "      the exact outputs are 0, or below 2^-14, "
                                                   "in all of 1 cases, so that nothing was judged");
  program_says(program_gives(0, "check family=simt head_dim=8 normalizer=none -q").out,
               "  sees 100% of pairs  1 of 6 cases judged nothing\n");
}

/* Values of an input from a file, which fits every shape. */
TEST(values_of_a_file) {
  static const char words[] = "check family=simt head_dim=16 mask=k<n[b] inputs.n=i32[b] h=1 nq=20 "
                              "nk=50 -q --in n=n.npy";
  static const int32_t lengths[] = {10, 30};
  static const char header[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  char file[136];
  memset(file, ' ', sizeof file);
  memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
  memcpy(file + 10, header, strlen(header));
  file[127] = '\n';
  memcpy(file + 128, lengths, sizeof lengths);
  scratch_put("n.npy", file, sizeof file);
  program_says(program_gives(0, "%s b=2", words).out, "  sees 40% of pairs\n");
  program_refuses(2, "n: axis 0 of its file has 2, the shape 3 (b= h= hk= nq= nk= choose another)",
                  "%s b=3", words);
  program_refuses(2, "--in m: no variant has such an input",
                  "check family=simt head_dim=16 b=2 -q --in m=n.npy");
  program_refuses(2, "--in lse: check computes it",
                  "check family=simt head_dim=16 pass=backward b=2 -q --in lse=n.npy");
  program_refuses(2, "q: its file holds integers (i4), expected floats",
                  "check family=simt head_dim=16 b=2 -q --in q=n.npy");
}

/* An index that leaves its tensor, with the expression, the index and the pair. */
TEST(wrong_index) {
#define TABLE "head_dim=16 inputs.t=f32[h,nq+nk-1] b=1 h=2 nq=9 nk=7 -q"
  program_result r = program_gives(1, "check family=simt score=s+t[h,k-q+nq] " TABLE);
  program_says(r.out, "      score: an index leaves its tensor: t[h, nq + (k - q)]: index 2 is 15, "
                      "not in 0 to 14, at b=0 h=0 q=0 k=6\n");
  r = program_gives(1, "check family=mma pass=backward score=s+t[h,k-q+nq] " TABLE);
  program_says(r.out, "index 2 is 15, not in 0 to 14, at b=0 h=0 q=0 k=6\n");
  program_gives(0, "check family=simt score=s+t[h,k-q+nq-1] " TABLE);
  r = program_gives(1, "check head_dim=16 mask=ids[b,q]==ids[b,k] inputs.ids=i32[b,k] b=1 h=1 "
                       "nq=9 nk=7 -q");
  program_says(r.out,
               "      mask: an index leaves its tensor: ids[b, q]: index 2 is 7, not in 0 to "
               "6, at b=0 h=0 q=7 k=0\n");
  /* one that 32 bits would wrap into the tensor */
  r = program_gives(1, "check family=simt score=s+t[h,k*4294967296] " TABLE);
  program_says(r.out, "t[h, k * 4294967296]: index 2 is 4294967296, not in 0 to 14, at b=0 h=0 q=0 "
                      "k=1\n");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
