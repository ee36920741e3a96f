/* t_api_compiler.c - kernels from the cache and the compiler that made them: one that changes, and
 * none at all. */
#include "api_case.h"
#include "device/compile.h"
#include "scratch.h"
#include "zoo/zoo_text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SMALL "head_dim=8 block_q=4"
#define PASS  "exec $CC \"$@\""
#define GONE  "/nonexistent/cc cannot be started: No such file or directory"

static void no_compiler(void) { setenv("FLASHGEN_CC", "/nonexistent/cc", 1); }

/* Asks for the kernel of the words, and expects that many hits and compiles; what was published
 * besides the kernel is who made it. */
static void ask(const char *words, int hits, int compiles) {
  fg_context *context = api_open("cache");
  api_kernel(context, words);
  api_counts(context, hits, 1, compiles, 1);
  if (!compiles) ck_assert_uint_eq(fg_cache_count(context->cache, FG_COUNT_PUBLISHED), 0);
  fg_close(context);
}

/* The same of a kernel that cannot be made. */
static void ask_in_vain(const char *words, int hits, unsigned corrupt) {
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, words);
  fg_kernel *kernel = NULL;
  FAILS(FG_EENVIRONMENT, GONE, fg_select(op, &api_shape, NULL, &kernel));
  ck_assert_ptr_nonnull(strstr(fg_error(), "FLASHGEN_CC"));
  ck_assert_ptr_null(kernel);
  api_counts(context, hits, 0, 0, 0);
  ck_assert_uint_eq(fg_cache_count(context->cache, FG_COUNT_CORRUPT), corrupt);
  fg_close(context);
}

/* Nothing is made and nothing is known of who made what: everything that needs no kernel works,
 * and the sentence says what is missing. */
TEST(test_cold) {
  no_compiler();
  for (int warm = 0; warm < 2; warm++) ask_in_vain(SMALL, warm, 0);
  fg_context *context = api_open("cache");
  fg_spec spec = api_spec(SMALL);
  char *text;
  GOOD(fg_emit(context, &spec, NULL, &text));
  free(text);
  fg_close(context);
}

/* A cache that is warm is as good without a compiler: hits are the compiler's name, the plans, the
 * kernel; nothing is written. What is not there fails as ever, and works again with a compiler. */
TEST(test_warm) {
  ask(SMALL, 0, 1);
  no_compiler();
  ask(SMALL, 3, 0);
  setenv("FLASHGEN_JIT", "0", 1);
  ask(SMALL, 3, 0);
  unsetenv("FLASHGEN_JIT");
  ask_in_vain("head_dim=16 block_q=4", 1, 0);
  unsetenv("FLASHGEN_CC");
  ask(SMALL, 2, 0);
  ask("head_dim=16 block_q=4", 1, 1);
}

/* The kernels found are those of the compiler that made the last one; a hit changes nothing. */
TEST(test_last_compiler) {
  api_compiler("first", "compiler 1.0", PASS);
  ask(SMALL, 0, 1);
  ask("head_dim=16 block_q=4", 0, 1);
  api_compiler("second", "compiler 2.0", PASS);
  ask(SMALL, 1, 1);
  no_compiler();
  ask(SMALL, 3, 0);
  ask_in_vain("head_dim=16 block_q=4", 2, 0); /* its plans are anybody's */
  api_compiler("first", "compiler 1.0", PASS);
  ask(SMALL, 2, 0);
  no_compiler();
  ask_in_vain("head_dim=16 block_q=4", 2, 0);
  api_compiler("first", "compiler 1.0", PASS);
  ask(SMALL " dtype=f16", 0, 1);
  no_compiler();
  ask("head_dim=16 block_q=4", 3, 0);
  ck_assert_int_eq(api_compiled("first"), 3);
  ck_assert_int_eq(api_compiled("second"), 1);
}

/* A compiler that is there when the context looks and cannot be used when it is needed. */
TEST(test_unusable) {
  api_compiler("first", "compiler 1.0", PASS);
  ask(SMALL, 0, 1);
  api_compiler("second", "compiler 2.0", PASS);
  fg_context *context = api_open("cache");
  fg_kernel *kernel;
  GOOD(fg_context_identify(context));
  ck_assert_int_eq(remove(getenv("FLASHGEN_CC")), 0);
  api_kernel(context, SMALL);
  api_counts(context, 3, 1, 0, 1); /* the plans, the name, the first one's kernel */
  FAILS(FG_EENVIRONMENT, "second",
        fg_select(api_define(context, "head_dim=16 block_q=4"), &api_shape, NULL, &kernel));
  fg_close(context);
}

/* A compile that fails is nobody's name. */
TEST(test_failed_compile) {
  fg_kernel *kernel;
  api_compiler("first", "compiler 1.0", PASS);
  ask(SMALL, 0, 1);
  api_compiler("second", "compiler 2.0", "exit 1");
  fg_context *context = api_open("cache");
  FAILS(FG_ECOMPILER, "refused it (exit 1)",
        fg_select(api_define(context, SMALL), &api_shape, NULL, &kernel));
  fg_close(context);
  no_compiler();
  ask(SMALL, 3, 0);
}

/* What the machine does to a compiler is no fault of the kernel: another code, and nothing of it is
 * kept. */
TEST(test_machine_fails) {
  static const struct {
    const char *script, *why;
    fg_status status;
  } all[] = {
      {"echo \"kernel.c:3:1: fatal error: error writing to /tmp/x.s: No space left on device\"; "
       "exit 1",
       "working in ", FG_EIO},
      {"echo 'ld: final link failed: Disk quota exceeded'; exit 1", "says: Disk quota exceeded",
       FG_EIO},
      {"echo 'cc1: out of memory allocating 65536 bytes'; exit 1", "says: out of memory",
       FG_EMEMORY},
      {"echo 'fatal error: Killed signal terminated program cc1'; exit 1", "Killed signal",
       FG_EMEMORY},
      {"kill -9 $$", "was ended by signal 9", FG_EENVIRONMENT},
  };
  fg_kernel *kernel;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    api_compiler("first", "compiler 1.0", all[i].script);
    fg_context *context = api_open("cache");
    FAILS(all[i].status, all[i].why,
          fg_select(api_define(context, SMALL), &api_shape, NULL, &kernel));
    fg_close(context);
  }
  api_compiler("first", "compiler 1.0", PASS);
  ask(SMALL, 1, 1); /* the plans were listed */
}

static void made_ago(const char *path, time_t seconds) {
  const struct timespec t[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
  ck_assert_int_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* Directories of processes that were killed go with the next compile; those in use, young ones and
 * others' do not. */
TEST(test_left_behind) {
  static const char *const dirs[] = {"tmp/flashgen-killed", "tmp/flashgen-inuse_",
                                     "tmp/flashgen-young_", "tmp/flashgen-other_name"};
  ck_assert_int_eq(mkdir("tmp", 0777), 0);
  for (int i = 0; i < 4; i++) {
    char file[64];
    ck_assert_int_eq(mkdir(dirs[i], 0777), 0);
    snprintf(file, sizeof file, "%s/kernel.c", dirs[i]);
    scratch_put(file, "x", 1);
    if (i != 2) made_ago(dirs[i], 3600);
  }
  int held = open(dirs[1], O_RDONLY | O_DIRECTORY);
  ck_assert(held >= 0 && !flock(held, LOCK_EX));
  setenv("TMPDIR", "tmp", 1);
  ask(SMALL, 0, 1);
  ck_assert_int_ne(access(dirs[0], F_OK), 0);
  for (int i = 1; i < 4; i++) ck_assert_msg(!access(dirs[i], F_OK), "%s", dirs[i]);
  close(held);
}

/* What NVRTC warns of, and refuses therefore, the host device refuses too: text, and what of it. */
static const char *const strict[][2] = {
    {"void f(int n) {\n  const int m = 2 * n;\n}\n", "kernel.c:2:13: error: unused variable"},
    {"void f(int n) {\n  int m;\n  m = 2 * n;\n}\n", "kernel.c:2:7: error: variable"},
    {"void f(int n) {\n  n + 1;\n}\n", "kernel.c:2:5: error: statement with no effect"},
    {"static int f(int n) {\n  return n;\n}\n", "kernel.c:1:12: error: "},
    {"int f(void) {\n  return 1 / 0;\n}\n", "kernel.c:2:12: error: division by zero"},
    {"int f(void) {\n  return 65536 * 65536;\n}\n", "kernel.c:2:16: error: integer overflow"},
};

TEST_LOOP(test_strict, sizeof strict / sizeof *strict) {
  char text[128];
  fg_source source = {.text = text, .size = strlen(strict[_i][0])};
  fg_code code;
  strcpy(text, strict[_i][0]);
  FAILS(FG_ECOMPILER, strict[_i][1], fg_compile("host", "planted", &source, &code));
  source.unskipped = true; /* what `check` compares with is no kernel that ships */
  GOOD(fg_compile("host", "planted", &source, &code));
  free(code.data);
}

static void name_key(fg_key *key) {
  const int format = FG_CACHE_FORMAT;
  char options[1024];
  GOOD(fg_compiler_options("host", sizeof options, options));
  GOOD(fg_key_add(key, "format", &format, sizeof format));
  GOOD(fg_key_add(key, "what", "compiler", 8));
  GOOD(fg_key_add(key, "arch", "host", 4));
  GOOD(fg_key_add(key, "options", options, strlen(options)));
}

/* The name's file, as in cache.h. */
static void name_path(const fg_key *key, size_t size, char *path) {
  char digest[FG_DIGEST_HEX];
  fg_zoo_digest(key->text, key->n, digest);
  snprintf(path, size, "cache/k/%.2s/%s.k", digest, digest + 2);
}

static void flip_last_byte(const char *path) {
  FILE *file = fopen(path, "r+b");
  ck_assert_msg(file && !fseek(file, -1, SEEK_END), "%s", path);
  int last = fgetc(file);
  ck_assert_int_eq(fseek(file, -1, SEEK_END), 0);
  fputc(last ^ 1, file);
  ck_assert_int_eq(fclose(file), 0);
}

/* A name that is damaged, gone, empty, too long or another's: as if there were none, and the next
 * compile writes a good one. */
TEST_LOOP(test_damaged_name, 6) {
  static const struct {
    int hits;
    unsigned corrupt;
  } rows[] = {{1, 1}, {1, 1}, {1, 0}, {2, 0}, {2, 0}, {2, 0}};
  char path[128], text[2000];
  fg_key key = {0};
  ask(SMALL, 0, 1);
  name_key(&key);
  name_path(&key, sizeof path, path);
  memset(text, 'x', sizeof text);
  text[_i == 3 ? 0 : _i == 4 ? sizeof text - 1 : 10] = 0;
  if (_i == 0) flip_last_byte(path);
  if (_i == 1) ck_assert_int_eq(truncate(path, 100), 0);
  if (_i == 2) ck_assert_int_eq(unlink(path), 0);
  if (_i >= 3) {
    fg_context *context = api_open("cache");
    ck_assert(fg_cache_put(context->cache, &key, text, NULL, 0));
    fg_close(context);
  }
  no_compiler();
  ask_in_vain(SMALL, rows[_i].hits, rows[_i].corrupt);
  unsetenv("FLASHGEN_CC");
  ask(SMALL " dtype=f16", 0, 1);
  no_compiler();
  ask(SMALL, 3, 0);
  fg_key_free(&key);
}

/* A kernel never goes by the name of a compiler that did not make it: the context has a compiler,
 * none, or the name of one that is gone, and another one comes. */
TEST_LOOP(test_compiler_changes, 3) {
  if (_i != 1) api_compiler("compiler", "compiler 1.0", PASS);
  if (_i == 2) ask("head_dim=16 block_q=4", 0, 1);
  if (_i >= 1) no_compiler();
  fg_context *context = api_open("cache");
  fg_kernel *kernel = NULL;
  api_compiler("compiler", "compiler 2.0", PASS);
  FAILS(FG_EENVIRONMENT, "and the one here is \"compiler 2.0 -std=",
        fg_select(api_define(context, SMALL), &api_shape, NULL, &kernel));
  ck_assert_ptr_nonnull(strstr(fg_error(), _i == 1 ? "by the compiler \"none\""
                                                   : "by the compiler \"compiler 1.0 -std="));
  ck_assert_int_eq(api_compiled("compiler"), _i == 2);
  fg_close(context);
  ask(SMALL, 1, 1);
}

TEST_FIXTURE(api_enter, api_leave)
