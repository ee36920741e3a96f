/* t_draw.c - `flashgen draw`, and the pages of `flashgen help` and `flashgen list --support`. */
#include "formula/formula_parse.h"
#include "json.h"
#include "program.h"
#include "recipe/recipe.h"
#include "scratch.h"
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- draw ---- */

TEST(draw_text) {
  ck_assert_str_eq(program_gives(0, "draw mask=causal nq=3 nk=4").out,
                   "mask=causal\n"
                   "  q \\ k  0 1 2 3\n"
                   "      0  # # . .\n"
                   "      1  # # # .\n"
                   "      2  # # # #\n"
                   "9 of 12 pairs are visible; causal: no key after its query\n");
  /* each head has a picture; what a row sees depends on the number and on the batch and head */
  ck_assert_str_eq(program_gives(0, "draw mask=k<width+h&&b==0 inputs.width=int width=1 b=2 h=2 "
                                    "nq=1 nk=3")
                       .out,
                   "mask=k < h + width && b == 0\n"
                   "b=0 h=0\n  q \\ k  0 1 2\n      0  # . .\n"
                   "b=0 h=1\n  q \\ k  0 1 2\n      0  # # .\n"
                   "b=1 h=0\n  q \\ k  0 1 2\n      0  . . .\n"
                   "b=1 h=1\n  q \\ k  0 1 2\n      0  . . .\n"
                   "3 of 12 pairs are visible; causal: no key after its query\n");
  program_says(program_gives(0, "draw mask=full").out, "64 of 64 pairs are visible\n");
}

/* The same numbers of a tensor, as a word and as a file. */
TEST(draw_tensors) {
  static const char npy[] = "\x93NUMPY\1\0\x76\0{'descr': '<i4', 'fortran_order': False, 'shape': "
                            "(1, 4), }";
  static const int ids[] = {0, 0, 1, 1};
  char file[128 + sizeof ids];
  memset(file, ' ', sizeof file);
  memcpy(file, npy, sizeof npy - 1);
  file[127] = '\n';
  memcpy(file + 128, ids, sizeof ids);
  scratch_put("ids.npy", file, sizeof file);
#define IDS "draw mask=document(ids) inputs.ids=i32[b,k] nq=2 nk=4 "
  char *by_word = strdup(program_gives(0, IDS "ids=0,0,1,1").out);
  program_says(by_word, "      0  . . # #\n      1  . . # #\n4 of 8 pairs are visible\n");
  ck_assert_str_eq(program_gives(0, IDS "--in ids=ids.npy").out, by_word);
  free(by_word);
  program_refuses(2, "ids: 3 numbers are given; it has 4", IDS "ids=0,0,1");
  program_refuses(2, "--in ids: ids.npy has 4 numbers; it has 5", IDS "nk=5 --in ids=ids.npy");
  program_refuses(2,
                  "the mask reads the tensor ids: give its 4 numbers as ids=0,0,1,... or --in "
                  "ids=FILE.npy",
                  IDS);
  program_refuses(2,
                  "mask: an index leaves its tensor: ids[b, p]: index 2 is -1, not in 0 to 1, "
                  "at b=0 h=0 q=0 k=0",
                  "draw mask=ids[b,p]==ids[b,k] inputs.ids=i32[b,k] nq=3 nk=2 ids=0,0");
}

TEST(draw_svg) {
  program_result r = program_gives(0, "draw mask=k<=p&&k>0 nq=2 nk=3 -o a.svg");
  ck_assert_str_eq(r.out, "");
  const char *svg = program_text("a.svg");
  ck_assert_int_eq(strncmp(svg, "<svg xmlns=", 11), 0);
  program_says(svg, "<title>0 &lt; k &amp;&amp; k &lt;= p: 3 of 6 pairs are visible");
  ck_assert_int_eq(program_count(svg, "<rect class=\"v\""), 3);
  ck_assert_int_eq(program_count(svg, "<rect class=\"h\""), 3);
  program_gives(0, "draw mask=full nq=1 nk=1 -o a.txt"); /* any other name is text */
  program_says(program_text("a.txt"), "      0  #\n");
}

TEST(draw_refused) {
  program_refuses(2, "2 specs: give one mask to draw", "draw mask=full,causal");
  program_refuses(2, "kernel=linear has no mask", "draw kernel=linear width=64");
  program_refuses(2, "the mask reads the number width: give width=N",
                  "draw mask=k<width inputs.width=int");
  program_refuses(2, "a picture has at most 256 queries and keys, and 256 batches and heads",
                  "draw mask=causal nq=257");
  program_says(program_gives(2, "draw mask=casual").err, "(did you mean \"causal\"?)");
}

/* ---- help ---- */

/* The specs that words give: in this process, as there are many. */
static int specs_of(const char *words) {
  char copy[512];
  const char *list[16];
  int n = 0;
  fg_grid *grid;
  snprintf(copy, sizeof copy, "%s", words);
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) list[n++] = word;
  ck_assert_msg(fg_grid_read(0, NULL, n, list, &grid) == FG_OK, "%s: %s", words, fg_error());
  const int specs = grid->n;
  fg_grid_free(grid);
  return specs;
}

/* Every field's example is a spec that names the field, and so is that of every kind and score. */
TEST(examples_are_specs) {
  for (int i = 0; i < FG_FIELDS; i++) {
    char name[64], dotted[64];
    snprintf(name, sizeof name, "%s=", fg_fields[i].name);
    snprintf(dotted, sizeof dotted, "%s.", fg_fields[i].name);
    ck_assert_ptr_nonnull(fg_fields[i].example);
    ck_assert_msg(strstr(fg_fields[i].example, name) || strstr(fg_fields[i].example, dotted), "%s",
                  fg_fields[i].example);
    ck_assert_int_ge(specs_of(fg_fields[i].example), 1);
  }
  for (int i = 0; i < FG_KINDS; i++) ck_assert_int_eq(specs_of(fg_kinds[i].example), 1);
  const fg_definitions all = fg_formula_builtin();
  int notes = 0;
  for (int i = 0; i < all.n; i++) {
    const fg_definition_note note = fg_formula_note(i);
    ck_assert_int_eq(!note.example, !note.help);
    notes += note.example != NULL;
    if (!note.example || !strstr(note.example, "score=")) continue;
    char words[512], name[32];
    snprintf(words, sizeof words, "head_dim=64 %s", note.example);
    ck_assert_int_eq(specs_of(words), 1);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(all.list[i].name, "("), all.list[i].name);
    program_says(words, name);
  }
  ck_assert_int_ge(notes, 17);
}

TEST(help_topics) {
  char *all = strdup(program_gives(0, "help").out);
  program_says(all, "\n  flashgen help masks ");
  program_says(all, "\n  flashgen draw ");
  free(all);
  const char *field = program_gives(0, "help bias_dims").out;
  program_says(field, "\nbias_dims\n  the axes of the bias");
  program_says(field, "\n  default  b,h,q,k\n");
  program_says(field, "\n  kernels  attention\n");
  program_says(field, "\n  flashgen list head_dim=64 bias=true 'bias_dims=[q,k]'\n");
  const char *exits = program_gives(0, "help exit_codes").out;
  program_says(exits, "\n  130  interrupted");
  program_says(exits, "\n  FG_EIO           6     3         ");
  program_says(program_gives(0, "help environment").out,
               "\n  FLASHGEN_JIT             1       0: ");
  const char *linear = program_gives(0, "help linear").out;
  program_says(linear, "\n  y              [rows, width_out]");
  program_says(linear, " forward: out, backward: in epilogue=relu ");
}

/* A page in Markdown: what is code is code, and what is prose means itself. */
TEST(help_markdown) {
  const char *page = program_gives(0, "help mask --markdown").out;
  program_says(page,
               "## `mask`\n\nvisible keys: full, causal, window(1023, 0), k \\<= p && p - k "
               "\\< width\n\n- values: an expression\n- default: `full`\n- kernels: attention\n"
               "- in C: `fg_spec.mask`\n\n");
  program_says(page, "```sh\nflashgen list head_dim=64 'mask=causal,window(127,0),k<=p&&(p-k)%2==0'"
                     "\n```\n");
  page = program_gives(0, "help bench --markdown").out;
  program_says(page, "\n| `--plans first\\|N\\|all` | ");
  program_says(page, "--json\nflashgen bench kernel=linear ");
  program_says(page, "```\n\nother words: ");
  page = program_gives(0, "help masks --markdown").out;
  program_says(page, "## `window(l, r)`\n");
  program_says(page, "- formula: `p / n == k / n`\n");
  program_says(page, "```text\nmask=causal\n  q \\ k  0 1 2 3 4 5 6 7\n      0  # . . . ");
  ck_assert_int_eq(program_count(page, "The example is causal"), 3);
  ck_assert_int_eq(program_count(page, "The example is not causal"), 6);
}

/* The axes that a layout gives to tensors, and those of a bias of packed sequences. */
TEST(help_kinds) {
  const char *page = program_gives(0, "help attention --markdown").out;
  program_says(page, "[`mask`](../fields/expressions.md#mask), [`score`](");
  program_says(page, "| `do` | `[b, nq, h, dv]` | dtype | backward: in |  | gradient of o; "
                     "fg_args.dout |\n");
  program_says(page, "| `q_layout=packed kv_layout=packed` | `q` | `[tokens_q, h, d]` |\n");
  program_says(page, "| `q_layout=packed kv_layout=packed` | `bias` | `[1, h, tokens_q, tokens_k]` "
                     "|\n");
  program_says(page, "| `kv_layout=paged` | `k` | `[pages, page, hk, d]` |\n");
  ck_assert_int_eq(program_count(page, "| `kv_layout=paged` | `dk` |"), 0); /* forward only */
  program_says(page, "| `keep` | dropout=true |\n");
  program_says(page, "| `seed` | `[4]` | i32 | forward: in, backward: in | `dropout=true` |");
}

TEST(list_support) {
  const char *text = program_gives(0, "list --support head_dim=64 pass=forward,backward").out;
  program_says(text, "attn_fwd-bf16-d64                  forward  wgmma mma decode simt  simt ");
  program_says(text, "attn_bwd-bf16-d64                  backward wgmma mma simt         simt ");
  program_says(text, "host sm_90a            sm_75 ");
  const char *page = program_gives(0, "list --support --markdown head_dim=64 dtype=e4m3").out;
  program_says(page, "| spec | pass | host sm_90a | sm_75 sm_80 sm_86 sm_87 | ");
  program_says(page, "| `attn_fwd-e4m3-d64` | forward | wgmma mma simt | simt | mma simt |\n");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
