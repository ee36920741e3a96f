/* t_switches_off.c - each decision of the families turned off: the kernel is right without it. */
#include "api_case.h"
#include "kernel_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void enter(void) {
  api_enter();
  api_leave();
}

static void leave(void) { unsetenv("FLASHGEN_SWITCH"); }

#define FORWARD(words)   "family=mma pass=forward " words
#define BACKWARD(words)  "family=mma pass=backward " words
#define PLAN(q, k, s, w) " block_q=" #q " block_kv=" #k " stages=" #s " warps=" #w
#define WGMMA            "family=wgmma head_dim=64 block_q=192 block_kv=128 "
#define WINDOW           "mask=window(70,0) "

/* A kernel that has the switch on, or may have it on by force, on the host device. */
static const struct decision {
  const char *name, *words;
} decisions[] = {
    {"starts_early", FORWARD("head_dim=8" PLAN(64, 64, 2, 4))},
    {"batches_side_by_side", FORWARD("bias=true bias_dims=[h,q,k] head_dim=8" PLAN(64, 64, 2, 4))},
    {"heads_side_by_side", FORWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"short_rows_first", FORWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"first_row_is_shuffled", FORWARD(WINDOW "head_dim=8/72" PLAN(64, 64, 2, 4))},
    {"begin_at_mask", FORWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"warps_leave_tiles", FORWARD("mask=causal head_dim=8" PLAN(128, 64, 2, 8))},
    {"loads_next_k_early", FORWARD("head_dim=8" PLAN(64, 64, 1, 4))},
    {"one_bound", FORWARD("mask=causal_top_left head_dim=8" PLAN(64, 64, 2, 4))},
    {"hides_by_columns", FORWARD(WINDOW "head_dim=8" PLAN(128, 96, 2, 4))},
    {"capped_exponents", FORWARD("score=softcap(30.0) head_dim=8" PLAN(64, 64, 2, 4))},
    {"small_tanh_in_cut_tiles",
     FORWARD("mask=causal score=softcap(30.0) head_dim=8" PLAN(64, 64, 2, 4))},
    {"batches_side_by_side", BACKWARD("bias=grad bias_dims=[h,q,k] head_dim=8" PLAN(64, 64, 2, 4))},
    {"heads_side_by_side", BACKWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"some_short_tiles_first", BACKWARD(WINDOW "head_dim=8" PLAN(64, 64, 2, 4))},
    {"tiles_in_halves", BACKWARD(WINDOW "head_dim=8" PLAN(64, 128, 2, 4))},
    {"small_tanh_in_cut_tiles",
     BACKWARD("mask=causal score=softcap(30.0) head_dim=8" PLAN(64, 64, 2, 4))},
    {"tile_sums_apart", FORWARD("dtype=e4m3 head_dim=16" PLAN(64, 64, 2, 4))},
    {"turns", WGMMA "mask=causal"},
    {"turns", WGMMA "slices=true"},
    {"first_tile_in_turn", WGMMA "mask=full"},
    {"turn_kept_in_place", WGMMA "mask=full normalizer=retention"},
    {"turn_ends_behind_output", WGMMA "score=softcap(30.0)"},
    {"separate_whole_tiles", "family=wgmma head_dim=64 block_q=128 block_kv=128 mask=causal"},
    {"whole_tiles_by_range", WGMMA "mask=window(70,0)"},
    {"first_tile_in_halves", WGMMA "mask=causal"},
    {"wait_before_weights", "family=wgmma head_dim=64 mask=causal score=softcap(30.0)"},
    {"two_sums_a_row", WGMMA "mask=full"},
    {"scale_stays_in_register", WGMMA "mask=causal score=alibi"},
    {"number_stays_in_register", "family=wgmma head_dim=64 score=s+t[0] inputs.t=f32[1]"},
    {"lane_of_output_shuffled", "family=wgmma head_dim=64 score=alibi key_parts=16"},
    {"tile_sums_apart", "family=wgmma dtype=e4m3 head_dim=64 mask=causal"},
    {"values_before_scores", "family=wgmma dtype=e4m3 head_dim=32/160 mask=causal"},
    {"chunks_by_exclusive_or", "family=wgmma dtype=e4m3 head_dim=32/160 mask=full"},
    {"thread_of_output_shuffled",
     "family=wgmma dtype=e4m3 head_dim=32/208 score=softcap(5.0) slices=true"},
    {"slices_walked_ahead", WGMMA "slices=true"},
    {"slices_before_by_lanes", WGMMA "slices=true"},
    {"turn_ends_at_last_part", "family=wgmma dtype=e4m3 head_dim=64 mask=causal"},
    {"claims", WGMMA "mask=causal"},
    {"sections_of_heads", WGMMA "mask=causal"},
    {"starts_early", "family=wgmma pass=backward head_dim=64 mask=full"},
    {"stays", "family=wgmma pass=backward head_dim=64 mask=full"},
    {"background", "family=wgmma pass=backward head_dim=64 mask=full"},
    {"queries_in_turns", "family=wgmma pass=backward head_dim=72/128 score=softcap(30.0)"},
    {"batches_side_by_side", "family=wgmma pass=backward head_dim=64 bias=grad bias_dims=[h,q,k]"},
    {"brings_input", "family=wgmma pass=backward head_dim=64 bias=true"},
    {"gradient_leaves_whole", "family=wgmma pass=backward head_dim=64 bias=grad"},
    {"takes_distances_once", "family=wgmma pass=backward head_dim=64 score=s+t[k-q+nq-1] "
                             "inputs.t=f32[nq+nk-1]"},
    {"sums_distances", "family=wgmma pass=backward head_dim=64 score=s+t[k-q+nq-1] "
                       "inputs.t=f32[nq+nk-1]grad"},
    {"sections_of_heads", "family=wgmma pass=backward head_dim=64 mask=causal"},
    {"keys_from_last", "family=wgmma pass=backward head_dim=64 mask=causal deterministic=true"},
    {"tells_late", "family=wgmma pass=backward head_dim=64 mask=full deterministic=true"},
    {"has_two_tiles_of_do", "family=wgmma pass=backward head_dim=136 mask=full"},
    {"has_unequal_pieces_of_dq", "family=wgmma pass=backward head_dim=136 mask=full"},
};
enum { DECISIONS = sizeof decisions / sizeof *decisions };

/* No kernel has the switch on by itself. */
static bool is_off(const char *name) {
  return !strcmp(name, "has_two_tiles_of_do") || !strcmp(name, "has_unequal_pieces_of_dq");
}

/* The line of the header that names what is on in the words' kernel, whose results are right.
 * force: "=1", "=0", or "" for the switch as it is by itself. */
static void launch(const struct decision *d, const char *force, size_t size, char *line) {
  char forced[64];
  snprintf(forced, sizeof forced, "%s%s", d->name, force);
  setenv("FLASHGEN_SWITCH", *force ? forced : "", 1);
  const verify_case which = {
      .shape = {.size = sizeof(fg_shape), .b = 2, .h = 2, .hk = 1, .nq = 150, .nk = 150},
      .seed = 5};
  kernels made = kernels_first("%s", d->words);
  ck_assert_int_eq(made.n, 1);
  kernel_verify(&made.list[0], &which);
  const char *at = strstr(made.list[0].source->text, "\n// switches: ");
  ck_assert_ptr_nonnull(at);
  const char *end = strstr(at, "\n// made by ");
  ck_assert_ptr_nonnull(end);
  snprintf(line, size, "%.*s", (int)(end - at), at);
  kernels_free(&made);
}

TEST_TENTH(right_without, DECISIONS) {
  const struct decision *d = &decisions[_i];
  char line[1024];
  launch(d, is_off(d->name) ? "=1" : "", sizeof line, line);
  ck_assert_msg(strstr(line, d->name), "%s: %s", d->words, line);
  launch(d, "=0", sizeof line, line);
  ck_assert_msg(!strstr(line, d->name), "%s: %s", d->words, line);
}

/* The list of an unknown name's error has them all. */
TEST(all_are_tried) {
  fg_variant variant;
  fg_source *source;
  fg_gen *gen;
  setenv("FLASHGEN_SWITCH", "none=0", 1);
  GOOD(fg_variant_parse("attn_fwd-bf16-d64.mma-q64-k64-s2-w4.host", &variant));
  GOOD(fg_gen_new(NULL, &gen));
  ck_assert_int_eq(fg_gen_expand(gen, &variant, &source), FG_EARGUMENT);
  fg_gen_free(gen);
  const char *at = strstr(fg_error(), "there are: ") + 11;
  ck_assert_ptr_null(strstr(strstr(at, "starts_early") + 1, "starts_early")); /* of two passes */
  while (*at) {
    const size_t n = strcspn(at, ",");
    bool found = false;
    for (int i = 0; i < DECISIONS; i++)
      found |= strlen(decisions[i].name) == n && !strncmp(decisions[i].name, at, n);
    ck_assert_msg(found, "no kernel is tried without %.*s", (int)n, at);
    at += n + (at[n] ? 2 : 0);
  }
}

TEST_FIXTURE(enter, leave)
TEST_TIMEOUT(120)
