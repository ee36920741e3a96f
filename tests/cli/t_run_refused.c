/* t_run_refused.c - bad input of `flashgen run`: one sentence that names the tensor, the exit code,
 * and no file made, changed or left behind. */
#include "device/device.h"
#include "program.h"
#include "run_case.h"
#include "scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define Q   "--in q=q.npy "
#define K   "--in k=k.npy "
#define V   "--in v=v.npy "
#define QKV Q K V
#define O   "--out o=o.npy "
#define DO  "--in do=do.npy "

static void enter(void) {
  scratch_enter();
  run_case_zeros("q", "2,3,4,16");
  run_case_zeros("k", "2,5,2,16");
  run_case_zeros("v", "2,5,2,24");
  run_case_zeros("do", "2,3,4,24");
  run_case_zeros("bias", "1,4,3,5");
  scratch_put("o.npy", "before", 6);
  ck_assert_int_eq(mkdir("tmp", 0777), 0);
  ck_assert_int_eq(mkdir("cache", 0700), 0); /* a compiled forward is kept */
}

static void refuses_with(int code, const char *words, const char *sentence) {
  char text[16] = "";
  int before = scratch_files();
  program_refuses(code, sentence, "run %s", words);
  ck_assert_msg(scratch_files() == before, "run %s: files are left", words);
  int file = open("o.npy", O_RDONLY);
  ck_assert_int_eq(read(file, text, sizeof text), 6);
  ck_assert_str_eq(text, "before");
  close(file);
}

static void refuses(const char *words, const char *sentence) { refuses_with(2, words, sentence); }

/* A tensor of other extents than enter() gave it: refused with the sentence. */
static void refuses_shape(const char *name, const char *extents, const char *words,
                          const char *sentence) {
  char path[32], kept[32];
  snprintf(path, sizeof path, "%s.npy", name);
  snprintf(kept, sizeof kept, "%s.kept", name);
  ck_assert_int_eq(rename(path, kept), 0);
  run_case_zeros(name, extents);
  refuses(words, sentence);
  ck_assert_int_eq(rename(kept, path), 0);
}

TEST(shapes_that_disagree) {
  const char *w = QKV O;
  refuses_shape("k", "3,5,2,16", w, "k: its batch (axis 0) is 3, but q has 2");
  refuses_shape("v", "2,5,1,24", w, "v: its key/value heads (axis 2) is 1, but k has 2");
  refuses_shape("v", "2,6,2,24", w, "v: its key length (axis 1) is 6, but k has 5");
  refuses_shape("k", "2,5,2,24", w, "k: its head dim (axis 3) is 24, but q has 16");
  w = "pass=backward " QKV DO O;
  refuses_shape("do", "2,4,4,24", w, "do: its query length (axis 1) is 4, but q has 3");
  refuses_shape("do", "2,3,2,24", w, "do: its heads (axis 2) is 2, but q has 4");
  refuses_shape("do", "2,3,4,16", w, "do: its v head dim (axis 3) is 16, but v has 24");
  refuses_shape(
      "k", "2,5,3,16", Q K "--in v=k.npy " O,
      "q: its heads are 4, not a multiple of the 3 key/value heads of k; heads are axis 2, "
      "behind the length: [b, n, h, d]");
}

/* Arrays [b, h, n, d] whose heads happen to divide are read as other lengths and heads: told. */
static void put_ints(const char *path, int64_t n, const int32_t *values) {
  run_case_file(path, "<i4", "False", 1, &n, values, (size_t)n * sizeof *values);
}

TEST(layouts) {
#define PACKED QKV O "q_layout=packed kv_layout=packed --in starts_k=good_k.npy "
  run_case_zeros("q", "6,4,16");
  run_case_zeros("k", "10,2,16");
  run_case_zeros("v", "10,2,16");
  put_ints("good.npy", 3, (const int32_t[]){0, 3, 6});
  put_ints("good_k.npy", 3, (const int32_t[]){0, 5, 10});
  put_ints("falls.npy", 3, (const int32_t[]){0, 5, 4});
  put_ints("ends.npy", 3, (const int32_t[]){0, 5, 7});
  put_ints("begins.npy", 3, (const int32_t[]){-1, 5, 6});
  put_ints("many.npy", 4, (const int32_t[]){0, 1, 2, 3});
  put_ints("none.npy", 0, (const int32_t[]){0});
  put_ints("used.npy", 2, (const int32_t[]){3, 4});
  refuses(PACKED, "starts_q is missing: give --in starts_q=FILE.npy");
  refuses(PACKED "--in starts_q=falls.npy", "starts_q: start 2 is 4, less than 5, the one before");
  refuses(PACKED "--in starts_q=ends.npy",
          "starts_q: start 2 is 7, beyond the 6 tokens of the tensor");
  refuses(PACKED "--in starts_q=begins.npy", "starts_q: start 0 is -1, less than 0");
  refuses(PACKED "--in starts_q=many.npy", "starts_q: its batch (axis 0) is 3, but starts_k has 2");
  refuses(QKV O "q_layout=packed kv_layout=packed --in starts_q=none.npy",
          "starts_q: it is empty; it has a start of each sequence and an end");
  refuses(PACKED "--in starts_q=q.npy", "starts_q: q.npy holds floats (f4); expected i4 or i8");
  refuses(PACKED "--in starts_q=good.npy --in used_q=used.npy",
          "used_q: sequence 1 has 4; expected 0 to 3, the rows that it has");
  refuses(PACKED "--in starts_q=good.npy tokens_q=7",
          "q: its query tokens (axis 0) is 6, but the command line has 7");
  refuses(QKV O "q_layout=packed", "k: k.npy has 3 axes; expected [b, nk, hk, d]");
  refuses(QKV O "--in starts_q=good.npy", "q: q.npy has 3 axes; expected [b, nq, h, d]");
}

TEST(axes_in_another_order) {
  run_case_zeros("q", "1,4,32,8");
  run_case_zeros("k", "1,2,32,8");
  run_case_zeros("v", "1,2,32,8");
  program_result r = program_gives(0, "run family=simt " QKV O);
  program_says(r.err,
               "\nq is [b=1, nq=4, h=32, d=8], k is [b=1, nk=2, hk=32, d=8]: if the files are "
               "[b, h, n, d], they must be transposed\n");
}

TEST(extents_in_words) {
  refuses("b=3 " QKV O, "q: its batch (axis 0) is 2, but the command line has 3");
  refuses("h=2 " QKV O, "q: its heads (axis 2) is 4, but the command line has 2");
  refuses("hk=4 " QKV O, "k: its key/value heads (axis 2) is 2, but the command line has 4");
  refuses("nq=1 " QKV O, "q: its query length (axis 1) is 3, but the command line has 1");
  refuses("nk=7 " QKV O, "k: its key length (axis 1) is 5, but the command line has 7");
  refuses("h=4 hk=0 nk=5 " QKV O,
          "k: its key/value heads (axis 2) is 2, but the command line has 0");
  refuses("nq=-1 " QKV O, "nq: \"-1\" is not an integer of at least 0");
  refuses("nq=3.0 " QKV O, "nq: \"3.0\" is not an integer of at least 0");
  refuses("nq= " QKV O, "nq: \"\" is not an integer of at least 0");
  refuses("scale=1e30 " QKV O, "scale = 1e+30: expected a number of at most 2^64 in size");
  refuses("scale=nan " QKV O, "scale: \"nan\" is not a number");
  refuses("sm_margin=-1 " QKV O, "sm_margin: \"-1\" is not an integer of at least 0");
  refuses("sm_margin=6 " QKV O, "sm_margin = 6: expected 0 to 5 on a device of 6 multiprocessors");
  refuses("scale=1/8 " QKV O, "scale: \"1/8\" is not a number");
}

TEST(tensors_missing_or_extra) {
  refuses(K V O, "q is missing: give --in q=FILE.npy");
  refuses(Q V O, "k is missing: give --in k=FILE.npy");
  refuses(Q "--in k=k.npy " O, "v is missing: give --in v=FILE.npy");
  refuses("hk=2 nk=5 " Q V O, "k is missing: give --in k=FILE.npy");
  refuses(O, "q is missing: give --in q=FILE.npy");
  refuses("pass=backward " QKV "--out dq=dq.npy", "do is missing: give --in do=FILE.npy");
  refuses("bias=true " QKV O, "bias is missing: give --in bias=FILE.npy");
  refuses("mask=window(width,0) inputs.width=int " QKV O, "width is missing: give width=NUMBER");
  refuses("score=softcap(cap)+wide inputs.cap=float inputs.wide=float wide=0 " QKV O,
          "cap is missing: give cap=NUMBER");
  refuses(QKV DO O, "do: the spec has no such input");
  refuses(QKV "--in dlse=q.npy " O, "dlse: q.npy has 4 axes; expected [b, h, nq]");
  refuses(QKV "--in o=do.npy " O, "o: the spec has no such input");
  refuses(QKV "--in bias=bias.npy " O, "bias is given, but the spec has bias=false: say bias=true");
  refuses(QKV "--in qq=q.npy " O, "--in qq: there is no tensor of that name (did you mean q?)");
  refuses(QKV "--in dbais=q.npy " O,
          "--in dbais: there is no tensor of that name (did you mean dbias?)");
  refuses(QKV "--in weights_of_all_layers=q.npy " O,
          "--in weights_of_all_layers: there is no tensor of that name");
}

TEST(outputs_asked_for) {
  refuses(QKV, "nothing to write: give --out o=FILE.npy");
  refuses(QKV O "--out dq=dq.npy", "dq: the spec has no such output");
  refuses(QKV O "--out q=dq.npy", "q: the spec has no such output");
  refuses("pass=backward " QKV DO O, "o: the spec has no such output");
  refuses("pass=backward bias=true --in bias=bias.npy " QKV DO "--out dbias=dbias.npy",
          "dbias: the spec has no such output");
  refuses(QKV O "--out lsee=lse.npy",
          "--out lsee: there is no tensor of that name (did you mean lse?)");
  refuses(QKV O "--out o=p.npy", "--out: o is given twice");
  refuses(QKV Q O, "--in: q is given twice");
  refuses(QKV O "--out lse=o.npy", "--out: o and lse would both be o.npy");
  refuses(QKV "--out o", "--out o: expected NAME=FILE");
  refuses(QKV "--out o=", "--out o=: expected NAME=FILE");
  refuses(QKV "--out =o.npy", "--out =o.npy: expected NAME=FILE");
}

TEST(places_that_cannot_be_written) {
  ck_assert_int_eq(mkdir("sealed", 0555), 0);
  ck_assert_int_eq(symlink("loop.npy", "loop.npy"), 0);
  refuses(QKV "--out lse=lse.npy --out o=missing/o.npy",
          "--out o=missing/o.npy: there is no directory missing");
  refuses(QKV "--out lse=lse.npy --out o=q.npy/o.npy",
          "--out o=q.npy/o.npy: there is no directory q.npy");
  refuses_with(3, QKV "--out lse=lse.npy --out o=tmp", "o: cannot write tmp: it is a directory");
  refuses_with(3, QKV "--out o=/dev/null", "o: cannot write /dev/null: it is not a regular file");
  refuses_with(3, QKV "--out o=/proc/o.npy",
               "o: cannot write /proc/o.npy: No such file or directory");
  if (geteuid()) /* to root nothing is sealed */
    refuses_with(3, QKV "--out o=sealed/o.npy", "o: cannot write sealed/o.npy: Permission denied");
}

/* One tensor's file; %s is its sentence after "q: x.npy ". */
static void refuses_file(const char *sentence) {
  char text[256];
  snprintf(text, sizeof text, "q: x.npy %s", sentence);
  refuses("--in q=x.npy " K V O, text);
}

TEST(bad_files) {
  static const int64_t extent[] = {2, 3, 4, 16};
  static const char data[2 * 3 * 4 * 16 * 8];
  enum { N = 2 * 3 * 4 * 16 };
  scratch_put("x.npy", "", 0);
  refuses_file("is not a .npy file: it has 0 bytes");
  scratch_put("x.npy", "{\"q\": [1, 2, 3]}", 16);
  refuses_file("is not a .npy file: it does not begin with \\x93NUMPY");
  run_case_file("x.npy", "<f4", "False", 4, extent, data, N * 4 - 1);
  refuses_file("is truncated: 1727 bytes found, 1728 needed");
  run_case_file("x.npy", "<f4", "False", 4, extent, data, N * 4 + 1);
  refuses_file("has 1 bytes after its last element");
  run_case_file("x.npy", ">f4", "False", 4, extent, data, N * 4);
  refuses_file("is big-endian (>f4); little-endian is read");
  run_case_file("x.npy", "<f4", "True", 4, extent, data, N * 4);
  refuses_file("is in Fortran order; C order is read (numpy.ascontiguousarray)");
  run_case_file("x.npy", "<c8", "False", 4, extent, data, N * 8);
  refuses_file("has elements of type <c8; f2, f4, f8, i4 and i8 are read");
  run_case_file("x.npy", "<i4", "False", 4, extent, data, N * 4);
  refuses_file("holds integers (i4); expected f2, f4 or f8");
  run_case_file("x.npy", "<i8", "False", 4, extent, data, N * 8);
  refuses_file("holds integers (i8); expected f2, f4 or f8");
  run_case_file("x.npy", "<f4", "False", 3, extent, data, 2 * 3 * 4 * 4);
  refuses_file("has 3 axes; expected [b, nq, h, d]");
}

TEST(files_that_cannot_be_read) {
  refuses_file("cannot be opened: No such file or directory");
  ck_assert_int_eq(mkdir("x.npy", 0777), 0);
  refuses_file("is a directory, not a .npy file");
  ck_assert_int_eq(rmdir("x.npy"), 0);
  ck_assert_int_eq(mkfifo("x.npy", 0666), 0);
  refuses_file("is not a regular file");
  ck_assert_int_eq(unlink("x.npy"), 0);
  if (!geteuid()) return; /* root reads everything */
  scratch_put("x.npy", "", 0);
  ck_assert_int_eq(chmod("x.npy", 0), 0);
  refuses_file("cannot be opened: Permission denied");
}

TEST(f16_overflow) {
  static const int64_t extent[] = {2, 3, 4, 16};
  float x[2 * 3 * 4 * 16] = {[100] = -65520};
  run_case_file("x.npy", "<f4", "False", 4, extent, x, sizeof x);
  refuses("dtype=f16 --in q=x.npy " K V O, "q: -65520 overflows f16");
  x[100] = 3.4e38f; /* finite, and beyond bfloat16's largest, 3.39e38 */
  run_case_file("x.npy", "<f4", "False", 4, extent, x, sizeof x);
  refuses("dtype=bf16 --in q=x.npy " K V O, "q: 3.4e+38 overflows bf16");
}

/* Inputs that the spec declares: of their type, numbers by words. */
TEST(declared_inputs) {
  static const int64_t extent[] = {2, 5};
  int64_t ids[10] = {[3] = 3, [7] = (int64_t)1 << 31};
  run_case_zeros("x", "2,5");
  run_case_file("ids.npy", "<i8", "False", 2, extent, ids, sizeof ids);
#define IDS "mask=document(ids) inputs.ids=i32[b,k] "
  refuses(IDS "--in ids=x.npy " QKV O, "ids: x.npy holds floats (f4); expected i4 or i8");
  refuses(IDS "--in ids=ids.npy " QKV O, "ids: 2147483648 overflows i32");
  refuses("score=s+x[b,k] inputs.x=f32[b,k] --in x=ids.npy " QKV O,
          "x: ids.npy holds integers (i8); expected f2, f4 or f8");
  refuses("mask=k<w inputs.w=int --in w=x.npy " QKV O, "--in w: it is a number; say w=X");
  refuses("mask=k<w inputs.w=int w=wide " QKV O, "w: \"wide\" is no number");
  refuses("mask=k<w inputs.w=int w=1.5 " QKV O,
          "w = 1.5: expected a whole number of at most 2^30 in size");
}

#define DIMS "expected d or d/dv, multiples of 8 from 8 to 576, dv to 512 (128 or 192/128)"

TEST(head_dims) {
  refuses_shape("v", "2,5,2,7", QKV O,
                "q has head dim 16, v has 7: head_dim: \"16/7\" is not allowed; " DIMS);
  refuses_shape("v", "2,5,2,520", QKV O,
                "q has head dim 16, v has 520: head_dim: \"16/520\" is not allowed; " DIMS);
  refuses("head_dim=16 " QKV O, "q has head dim 16, v has 24, but head_dim is 16/16");
  refuses("head_dim=24/16 " QKV O, "q has head dim 16, v has 24, but head_dim is 24/16");
}

TEST(bias_that_disagrees) {
  const char *w = "bias=true --in bias=bias.npy " QKV O;
  refuses_shape("bias", "1,4,3,6", w, "bias: axis 3 has 6, expected 5");
  refuses_shape("bias", "1,4,2,5", w, "bias: axis 2 has 2, expected 3");
  refuses_shape("bias", "1,2,3,5", w, "bias: axis 1 has 2, expected 4");
  refuses_shape("bias", "3,4,3,5", w, "bias: axis 0 has 3, expected 2");
  refuses_shape("bias", "4,3,5", w, "bias: bias.npy has 3 axes; expected [b, h, nq, nk]");
  refuses("bias=true bias_dims=[b,h,q,k] --in bias=bias.npy " QKV O,
          "bias: axis 0 has 1, expected 2");
  refuses("bias=true bias_dims=[q,k] --in bias=bias.npy " QKV O, "bias: axis 1 has 4, expected 1");
}

TEST(specs) {
  refuses("pass=forward,backward " QKV O, "the words give 2 specs; run takes one");
  refuses("mask=casual " QKV O,
          "mask: column 1: \"casual\" is no name, input or definition (did you mean \"causal\"?)\n"
          "  casual\n  ^");
  refuses("maks=full " QKV O, "unknown field \"maks\" (did you mean \"mask\"?)");
  refuses("forward " QKV O, "\"forward\": expected field=value or a spec file");
  refuses("--plan tmma-* " QKV O, "attn_fwd-bf16-d16v24: no plan matches --plan tmma-*; the first "
                                  "is wgmma-q192-k128-s2-w16");
  refuses("--plan tmma-* family=simt " QKV O,
          "attn_fwd-bf16-d16v24: no plan matches --plan tmma-*; the first "
          "is simt-q16-k32-w4");
  refuses("--device gpu " QKV O, "device gpu: expected host or cuda:N");
  fg_device *device; /* why not depends on the machine: no driver, or no GPU */
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  ck_assert_int_ne(fg_device_open("cuda:900", &device), FG_OK);
  refuses_with(3, "--device cuda:900 " QKV O, fg_error());
  refuses("--seed x " QKV O, "--seed: \"x\" is not an integer of at least 0");
  refuses("missing.lua " QKV O, "missing.lua: cannot be opened: No such file or directory");
}

/* What the machine lacks is said of the machine, once. */
TEST(machine) {
  static const struct {
    program_setup setup;
    const char *sentence;
  } lacks[] = {{{.env = {"FLASHGEN_CC=/nonexistent"}},
                "flashgen: FLASHGEN_CC: /nonexistent cannot be used: No such file or directory\n"
                "flashgen: the C compiler of the host device (FLASHGEN_CC): /nonexistent cannot be "
                "started: No such file or directory\n"},
               {{.env = {"FLASHGEN_CC=/bin/true"}},
                "flashgen: /bin/true (FLASHGEN_CC) ends without an error, but makes no library: it "
                "is no C compiler\n"},
               {{.env = {"TMPDIR=/nonexistent"}},
                "flashgen: /nonexistent: no temporary directory there: No such file or "
                "directory\n"}};
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
    program_result r = program_run(&lacks[i].setup, "run " QKV O);
    ck_assert_int_eq(r.code, 3);
    ck_assert_str_eq(r.err, lacks[i].sentence);
    ck_assert_str_eq(r.out, "");
  }
}

TEST_FIXTURE(enter, scratch_leave)
