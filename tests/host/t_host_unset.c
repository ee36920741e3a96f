/* t_host_unset.c - which declarations of a kernel's text get the value of registers that are not
 * set. */
#include "device/host_unset.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define F "FGH_UNSET_F32"
#define U "FGH_UNSET_U32"

static const struct {
  const char *text, *made;
} texts[] = {
    {"void f(void) { float x; }", "void f(void) { float x = " F "; }"},
    {"void f(void) {\n  float x, y = 1.0f, z;\n}",
     "void f(void) {\n  float x = " F ", y = 1.0f, z = " F ";\n}"},
    {"void f() { u32 v[4], *p, w; }",
     "void f() { u32 v[4] = {[0 ... (4) - 1] = " U "}, *p, w = " U "; }"},
    {"void f() { float o[R][C * (4 / 2)]; }",
     "void f() { float o[R][C * (4 / 2)] = {[0 ... (R) - 1] = {[0 ... (C * (4 / 2)) - 1] = " F
     "}}; }"},
    {"void f() { if (a) { float x; } else { float y; } do { u32 z; } while (0); }",
     "void f() { if (a) { float x = " F "; } else { float y = " F "; } do { u32 z = " U
     "; } while (0); }"},
    {"void f() { for (int i = 0; i < n; i++) { g(i); float x; } }",
     "void f() { for (int i = 0; i < n; i++) { g(i); float x = " F "; } }"},
    /* what has a value, a name alone or no storage of its own */
    {"typedef struct Params {\n  float scale;\n  u32 n;\n} Params;", NULL},
    {"enum { A = 1 };\nstatic const float table[2] = {1.0f, 2.0f};", NULL},
    {"DEV float f(float x, u32 y);", NULL},
    {"void f(float x) { const float y = x; float z = g(x, 1.0f), *p = &z; return (float)y; }",
     NULL},
    {"void f() { struct { float x; } s; floats x; }", NULL},
    {"// float x;\n/* { float x; } */\n#define W { float x; \\\n  float y; }\n", NULL},
    {"void f() { g(\"{ float x; \\\" float y;\", '{'); }\nfloat x;", NULL},
    {"", NULL},
};
enum { TEXTS = sizeof texts / sizeof *texts };

TEST_LOOP(test_text, TEXTS) {
  char *made;
  size_t size;
  const char *text = texts[_i].text, *want = texts[_i].made ? texts[_i].made : text;
  ck_assert_int_eq(fg_host_unset(text, strlen(text), &made, &size), FG_OK);
  ck_assert_str_eq(made, want);
  ck_assert_uint_eq(size, strlen(want));
  free(made);
}
