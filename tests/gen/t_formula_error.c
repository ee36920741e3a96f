/* t_formula_error.c - what is wrong with expressions and inputs, by its whole sentence. */
#include "suite.h"

#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of one spec, a list that ends with NULL, and what is said of them. */
static const struct {
  const char *word[4], *why;
} wrong[] = {
    /* syntax */
    {{"mask=k <= (p"}, "mask: column 8: expected \")\", found the end\n  k <= (p\n         ^"},
    {{"mask=k <= "}, "mask: column 5: expected a value, found the end\n  k <=\n      ^"},
    {{"mask=k <= p)"},
     "mask: column 7: expected an operator or the end, found \")\"\n  k <= p)\n        ^"},
    {{"mask=k & p"},
     "mask: column 3: expected an operator or the end, found \"&\"\n  k & p\n    ^"},
    {{"mask=k <= 12abc"},
     "mask: column 6: expected a number, found \"12abc\"\n  k <= 12abc\n       ^"},
    {{"score=s * 0x10"}, "score: column 5: expected a number, found \"0x10\"\n  s * 0x10\n      ^"},
    {{"mask=k <= 9007199254740992"},
     "mask: column 6: 9007199254740992 is no int: it is above 2^53 - 1\n  k <= "
     "9007199254740992\n       ^"},
    {{"score=s; int x"},
     "score: column 2: expected an operator or the end, found \";\"\n  s; int x\n   ^"},
    {{"score=s + \"x\""}, "score: column 5: expected a value, found \"\"\"\n  s + \"x\"\n      ^"},
    /* types */
    {{"mask=k + p"}, "mask: column 1: the mask is an int, expected a test\n  k + p\n  ^"},
    {{"score=k <= p"}, "score: column 1: the score is a test, expected a number\n  k <= p\n  ^"},
    {{"mask=k && p < 3"},
     "mask: column 3: && takes two tests, found an int and a test\n  k && p < 3\n    ^"},
    {{"mask=(k < p) + 1 < 2"},
     "mask: column 9: + takes two numbers, found a test and an int\n  (k < p) + 1 < 2\n          "
     "^"},
    {{"mask=!k"}, "mask: column 1: ! takes a test, found an int\n  !k\n  ^"},
    {{"score=k < p ? s : q < 2"},
     "score: column 7: ?: has a float and a test, expected one type\n  k < p ? s : q < 2\n        "
     "^"},
    {{"score=s % 2"}, "score: column 3: % takes two ints, found a float\n  s % 2\n    ^"},
    {{"score=k ? s : s"}, "score: column 3: ? takes a test, found an int\n  k ? s : s\n    ^"},
    {{"score=t[s]", "inputs.t=f32[h]"},
     "score: column 1: index 1 of t is a float, expected an int\n  t[s]\n  ^"},
    /* arity */
    {{"score=exp(s, s)"}, "score: column 1: exp takes 1 value, found 2\n  exp(s, s)\n  ^"},
    {{"mask=window(3)"},
     "mask: column 1: window does not take 1 value: write window(l, r)\n  window(3)\n  ^"},
    {{"score=t[h, q] + s", "inputs.t=f32[h]"},
     "score: column 1: t has 1 axis, found 2 indices\n  t[h, q] + s\n  ^"},
    {{"score=t + s", "inputs.t=f32[h]"},
     "score: column 1: t is a tensor: expected t[...]\n  t + s\n  ^"},
    {{"score=w[h] + s", "inputs.w=int"},
     "score: column 1: w is no tensor: it has no elements\n  w[h] + s\n  ^"},
    /* letters beyond ASCII, and none */
    {{"mask=k <= \u03c0"},
     "mask: column 6: expected a value, found \"\u03c0\"\n  k <= \u03c0\n       ^"},
    {{"mask=k <= \xff"}, "mask: column 6: expected a value, found \"?\"\n  k <= ?\n       ^"},
    /* names */
    {{"mask=casual"},
     "mask: column 1: \"casual\" is no name, input or definition (did you mean "
     "\"causal\"?)\n  casual\n  ^"},
    {{"score=s + slop[h]", "inputs.slope=f32[h]"},
     "score: column 5: \"slop\" is no name, input or definition (did you mean \"slope\"?)\n  s + "
     "slop[h]\n      ^"},
    {{"score=s", "inputs.k=int"}, "inputs.k: the name is taken: it is a name of the language"},
    {{"score=s", "inputs.lse=f32[h]"},
     "inputs.lse: the name is taken: it is an argument of every kernel"},
    {{"score=s", "inputs.do=int"},
     "inputs.do: the name is taken: it is an argument of every kernel"},
    {{"score=s", "inputs.scale=float"},
     "inputs.scale: the name is taken: it is an argument of every kernel"},
    {{"score=s", "inputs.sm_margin=int"},
     "inputs.sm_margin: the name is taken: it is a number of every launch"},
    {{"score=s", "inputs.x=f32[h] grad", "inputs.dx=f32[h]"},
     "inputs.dx: the name is taken: it is the gradient of x"},
    {{"score=s", "inputs.exp=int"},
     "inputs.exp: the name is taken: it is a function of the language"},
    {{"score=s", "inputs.causal=int"},
     "inputs.causal: the name is taken: causal is a definition of flashgen"},
    {{"score=s", "define.window(l, r)=k < l"},
     "define.window(l, r): the name is taken: it is a definition of flashgen"},
    {{"score=s", "inputs.w=int", "define.w=k < 2"}, "define.w: the name is taken: it is an input"},
    {{"score=s", "define.f(n)=k < n", "define.f(m)=k < m"},
     "define.f(m): the name is taken: it is defined already"},
    {{"score=s", "define.f(k)=k < 3"},
     "define.f(k): the parameter's name k is taken: it is a name of the language"},
    {{"score=s", "define.f(n, exp)=n < 3"},
     "define.f(n, exp): the parameter's name exp is taken: it is a function of the language"},
    {{"score=s", "define.f(n, n)=n < 3"},
     "define.f(n, n): the parameter's name n is taken: it is a parameter before it"},
    {{"mask=f(3)", "define.f(n)=f(n)"}, "mask: in f(n): column 1: f(n) uses itself\n  f(n)\n  ^"},
    {{"mask=f", "define.f=k < g", "define.g=(f ? 1 : 2)"},
     "mask: in f: in g: column 2: f uses itself\n  (f ? 1 : 2)\n   ^"},
    {{"score=s", "inputs.w=int"}, "inputs.w: declared, but no point uses it"},
    {{"score=s", "inputs.w=double"},
     "inputs.w: \"double\" is no type; expected int, float, or f32, bf16, f16, i32 with extents "
     "(f32[h] grad): b h hk q k, 1, or an expression in nq and nk"},
    {{"score=s", "inputs.t=f32[h, x + 1]"},
     "inputs.t: column 1: \"x\" is no name, input or definition"},
    {{"score=s", "inputs.t=f32[h, q + 1]"},
     "inputs.t: column 1: an extent is an expression in nq and nk"},
    {{"score=s", "inputs.t=f32[abs(nq - nk)]"},
     "inputs.t: the extent \"abs(nq - nk)\" (abs(nq - nk)) is none that a launch can work out: + - "
     "* "
     "/ % min max of nq, nk and numbers, without a sign in front"},
    {{"score=s", "inputs.t=f32[0 - 3]"}, "inputs.t: the extent \"0 - 3\" (-3) is none"},
    {{"score=s", "inputs.t=f32[max(nq, nk]"}, "inputs.t: column 11: expected \")\", found the end"},
    {{"score=s", "inputs.t=i32[h] grad"},
     "inputs.t: \"i32[h] grad\": only a tensor of floats has a gradient"},
    {{"score=s", "inputs.t=f32[h] monotone"},
     "inputs.t: \"f32[h] monotone\": only a tensor of i32 can be monotone"},
    {{"score=s", "define.2x=3"},
     "define: \"2x\": expected a name, or name(a, b) with at most 6 parameters"},
    /* ints beyond 64 bits */
    {{"mask=k * k * k < 5"},
     "mask: k * (k * k) may exceed 64 bits: by the ranges of what it names, its size is up to "
     "1.2e+27 "
     "(positions, lengths and int inputs may be 2^30, elements of i32 2^31)"},
    {{"mask=k < 5 || (q * nk + k) * nh * w / w < 9", "inputs.w=int"},
     "mask: nh * (k + q * nk) may exceed 64 bits"},
    {{"score=s + float(t[k] * t[k] * t[k])", "inputs.t=i32[k]"},
     "score: t[k] * (t[k] * t[k]) may exceed 64 bits: by the ranges of what it names, its size is "
     "up "
     "to 9.9e+27"},
    {{"score=s + u[abs(k - p) * 9007199254740991 % 7]", "inputs.u=f32[7]"},
     "score: abs(k - p) * 9007199254740991 may exceed 64 bits"},
    {{"mask=9007199254740991 * 2048 < k"}, "mask: 2048 * 9007199254740991 may exceed 64 bits"},
    /* what has no meaning */
    {{"mask=k / 0 < 3"}, "mask: column 3: division by a constant 0\n  k / 0 < 3\n    ^"},
    {{"score=s / (1.0 - 1.0)"}, "score: column 3: division by a constant 0"},
    {{"mask=s > 0.0"}, "mask: column 1: a mask cannot use the score s\n  s > 0.0\n  ^"},
    {{"score=s + floor(t[h])", "inputs.t=f32[h] grad", "pass=backward"},
     "score: column 5: t has a gradient and cannot stand under floor: it would be 0\n  s + "
     "floor(t[h])\n      ^"},
    {{"score=s + u[floor(t[h])]", "inputs.t=f32[h] grad", "inputs.u=f32[h]"},
     "t has a gradient and cannot stand under floor"},
    {{"mask=t[h] < 1.0", "inputs.t=f32[h] grad", "pass=backward"},
     "mask: column 1: t has a gradient and cannot stand in a mask\n  t[h] < 1.0\n  ^"},
};
enum { WRONG = sizeof wrong / sizeof *wrong };

static void refused(int n, const char *const *word, const char *why) {
  fg_grid *grid = NULL;
  ck_assert_int_eq(fg_grid_read(0, NULL, n, word, &grid), FG_ESPEC);
  ck_assert_msg(!strncmp(fg_error(), why, strlen(why)) || strstr(fg_error(), why), "%s\nnot\n%s",
                fg_error(), why);
}

TEST_LOOP(sentences, WRONG) {
  const char *word[5] = {"head_dim=64"};
  int n = 1;
  for (int i = 0; i < 4 && wrong[_i].word[i]; i++) word[n++] = wrong[_i].word[i];
  refused(n, word, wrong[_i].why);
}

/* What is large ends with a sentence too, soon and without a crash. */
TEST(large_texts) {
  enum { SIZE = 1 << 20 };
  static const char *const repeated[] = {"(",  "!",    "-",  "1+",        "k<",
                                         "a?", "min(", "x[", "k <= p && "};
  char *word = malloc(SIZE + 32);
  for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
    static const int sizes[] = {1000, 60000, SIZE};
    for (int s = 0; s < 3; s++) {
      size_t n = (size_t)sprintf(word, "mask="), piece = strlen(repeated[i]);
      for (; n + piece < (size_t)sizes[s]; n += piece) memcpy(word + n, repeated[i], piece);
      strcpy(word + n, "k");
      refused(2, (const char *const[]){"head_dim=64", word}, "mask: ");
      ck_assert_int_lt((int)strlen(fg_error()), 600);
    }
  }
  free(word);
}

/* Each uses the one before twice, and what they come to is always one number. */
TEST(doubling_definitions) {
  enum { LEVELS = 30 };
  static char definition[LEVELS][48];
  const char *word[LEVELS + 3] = {"head_dim=64", "score=s + x29", "define.x0=1.5"};
  for (int i = 1; i < LEVELS; i++) {
    snprintf(definition[i], sizeof *definition, "define.x%d=min(x%d, x%d)", i, i - 1, i - 1);
    word[i + 2] = definition[i];
  }
  refused(LEVELS + 2, word, "with its definitions the expression is longer than 1048576 bytes");
}
