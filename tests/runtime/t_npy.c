/* t_npy.c - reading .npy files: what NumPy writes is read, and every refusal is the sentence that
 * it should be. */
#include "base/error.h"
#include "reference/npy.h"
#include "scratch.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fg_array array;

static void leave(void) {
  fg_array_free(&array);
  scratch_leave();
}

/* x.npy of format `major`: the dict, padded as NumPy does, and the data. */
static void put_npy(int major, const char *dict, const void *data, size_t bytes) {
  char file[1024] = "\x93NUMPY";
  size_t start = major == 1 ? 10 : 12, n = (start + strlen(dict) + 1 + 63) / 64 * 64;
  file[6] = (char)major;
  file[8] = (char)((n - start) & 0xff), file[9] = (char)((n - start) >> 8);
  memset(file + start, ' ', n - start);
  memcpy(file + start, dict, strlen(dict));
  file[n - 1] = '\n';
  if (bytes) memcpy(file + n, data, bytes);
  scratch_put("x.npy", file, n + bytes);
}

static void reads(void) {
  ck_assert_msg(fg_npy_read("q", "x.npy", &array) == FG_OK, "%s", fg_error());
}

/* Reading path fails with exactly this sentence, and leaves the array alone. */
static void refuses_path(const char *path, const char *sentence) {
  fg_array out = {.rank = 77};
  ck_assert_int_eq(fg_npy_read("q", path, &out), FG_EARGUMENT);
  ck_assert_str_eq(fg_error(), sentence);
  ck_assert_int_eq(out.rank, 77);
  ck_assert_ptr_null(out.real);
}

static void refuses(const char *sentence) { refuses_path("x.npy", sentence); }

/* ---- what is read ---- */

static const float six[] = {0, 1, -2, 0.5f, 1e-40f, 3e38f};

TEST(test_numpy_headers) {
  static const struct {
    int major, rank;
    int64_t extent[FG_NPY_RANK];
    const char *dict;
  } file[] = {
      {1, 2, {2, 3, 1, 1, 1}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
      {2, 2, {3, 2, 1, 1, 1}, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"},
      {3, 1, {6, 1, 1, 1, 1}, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"},
      {1, 4, {1, 2, 1, 3, 1}, "{'shape': (1, 2, 1, 3), 'fortran_order': False, 'descr': '<f4'}"},
      {1, 5, {1, 1, 3, 1, 2}, "{'shape': (1,1,3,1,2), 'fortran_order': False, 'descr': '<f4'}"},
      {1, 3, {1, 6, 1, 1, 1}, "  {\"descr\":\"=f4\",'fortran_order':False,'shape':( 1,6 ,1 , )}"},
      {1, 1, {6, 1, 1, 1, 1}, "{'descr':\t'f4' ,\n'fortran_order' : False , 'shape' : (6 ,) , } "},
  };
  for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
    put_npy(file[i].major, file[i].dict, six, sizeof six);
    reads();
    ck_assert_int_eq(array.rank, file[i].rank);
    ck_assert_mem_eq(array.extent, file[i].extent, sizeof array.extent);
    ck_assert_int_eq(array.count, 6);
    ck_assert_str_eq(array.type, "f4");
    ck_assert_mem_eq(array.real, six, sizeof six);
    ck_assert_ptr_null(array.integer);
    fg_array_free(&array);
  }
}

/* numpy.save of numpy.array([[1, -2.5]], numpy.float16), byte for byte. */
TEST(test_numpy_bytes) {
  static const char file[] =
      "\x93NUMPY\x01\x00v\x00{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2), }         "
      "                                                 \n\x00<\x00\xc1";
  ck_assert_uint_eq(sizeof file - 1, 132);
  scratch_put("x.npy", file, sizeof file - 1);
  reads();
  ck_assert_str_eq(array.type, "f2");
  ck_assert_int_eq(array.rank, 2);
  ck_assert_float_eq(array.real[0], 1);
  ck_assert_float_eq(array.real[1], -2.5f);
}

TEST(test_integers) {
  int32_t i4[] = {1, -2, INT32_MIN};
  put_npy(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", i4, sizeof i4);
  reads();
  ck_assert_str_eq(array.type, "i4");
  ck_assert_ptr_null(array.real);
  for (int i = 0; i < 3; i++) ck_assert_int_eq(array.integer[i], i4[i]);
  fg_array_free(&array);
  int64_t i8[] = {INT64_MAX, INT64_MIN};
  put_npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2), }", i8, sizeof i8);
  reads();
  ck_assert_str_eq(array.type, "i8");
  ck_assert_mem_eq(array.integer, i8, sizeof i8);
}

/* More than one read buffer, and not a multiple of it. */
TEST(test_large) {
  enum { COUNT = 40001 };
  static int32_t x[COUNT];
  for (int32_t i = 0; i < COUNT; i++) x[i] = -i;
  put_npy(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (40001,), }", NULL, 0);
  FILE *f = fopen("x.npy", "ab");
  ck_assert_uint_eq(fwrite(x, sizeof *x, COUNT, f), COUNT);
  ck_assert_int_eq(fclose(f), 0);
  reads();
  ck_assert_int_eq(array.count, COUNT);
  for (int32_t i = 0; i < COUNT; i++) ck_assert_int_eq(array.integer[i], x[i]);
}

TEST(test_scalar_and_empty) {
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", six + 3, 4);
  reads();
  ck_assert_int_eq(array.rank, 0);
  ck_assert_int_eq(array.count, 1);
  ck_assert_float_eq(array.real[0], 0.5f);
  fg_array_free(&array);
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 0, 7), }", NULL, 0);
  reads();
  ck_assert_int_eq(array.rank, 3);
  ck_assert_int_eq(array.extent[2], 7);
  ck_assert_int_eq(array.count, 0);
  ck_assert_ptr_nonnull(array.real);
}

/* ---- what is refused ---- */

TEST(test_refused_kinds) {
  refuses("q: x.npy cannot be opened: No such file or directory");
  refuses_path(".", "q: . is a directory, not a .npy file");
  ck_assert_int_eq(mkfifo("fifo", 0600), 0);
  refuses_path("fifo", "q: fifo is not a regular file");
  refuses_path("/dev/zero", "q: /dev/zero is not a regular file");
}

TEST(test_refused_magic) {
  scratch_put("x.npy", "", 0);
  refuses("q: x.npy is not a .npy file: it has 0 bytes");
  scratch_put("x.npy", "PK\3\4 an archive", 15);
  refuses("q: x.npy is not a .npy file: it does not begin with \\x93NUMPY");
  scratch_put("x.npy", "\x93NUMPY\4\0v\0", 10);
  refuses("q: x.npy is of format 4.0; 1.0, 2.0 and 3.0 are read");
  scratch_put("x.npy", "\x93NUMPY\1\1v\0", 10);
  refuses("q: x.npy is of format 1.1; 1.0, 2.0 and 3.0 are read");
}

TEST(test_refused_lengths) {
  scratch_put("x.npy", "\x93NUMPY\1", 7);
  refuses("q: x.npy is truncated: 7 bytes found, 8 needed");
  scratch_put("x.npy", "\x93NUMPY\1\0v", 9);
  refuses("q: x.npy is truncated: 9 bytes found, 10 needed");
  scratch_put("x.npy", "\x93NUMPY\1\0v\0{", 11);
  refuses("q: x.npy is truncated: 11 bytes found, 128 needed");
  scratch_put("x.npy", "\x93NUMPY\2\0\xff\xff\xff\xff{", 13);
  refuses("q: x.npy is truncated: 13 bytes found, 4294967307 needed");
  scratch_put("x.npy", "\x93NUMPY\2\0\0\0\2\0{", 13);
  ck_assert_int_eq(truncate("x.npy", 200000), 0);
  refuses("q: x.npy has a header of 131072 bytes; up to 65536 are read");
  const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  put_npy(1, dict, six, 23);
  refuses("q: x.npy is truncated: 151 bytes found, 152 needed");
  put_npy(1, dict, "1234567890123456789012345", 25);
  refuses("q: x.npy has 1 bytes after its last element");
}

/* A header alone claims gigabytes and more: it is refused before anything is allocated. */
TEST(test_refused_sizes) {
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,), }", six, 4);
  refuses("q: x.npy is truncated: 132 bytes found, 4611686018427388032 needed");
  put_npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (1152921504606846976,), }", six, 4);
  refuses("q: x.npy has a shape of more than 2^63 bytes");
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", six,
          4);
  refuses("q: x.npy has a shape of more than 2^63 bytes");
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807), }", NULL,
          0);
  refuses("q: x.npy has a shape of more than 2^63 bytes");
  put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }", six, 4);
  refuses("q: x.npy has an extent above 2^63");
}

/* float64, as NumPy makes it unless told otherwise: rounded to float32, which has to reach it. */
TEST(test_float64) {
  static const double data[] = {0.1, -1e-46, 3.4e38, -(double)INFINITY, 1 + 0x1p-30, 1e39};
  put_npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }", data, 5 * sizeof *data);
  reads();
  ck_assert_int_eq(array.count, 5);
  for (int i = 0; i < 5; i++) ck_assert_float_eq(array.real[i], (float)data[i]);
  fg_array_free(&array);
  put_npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }", data, sizeof data);
  refuses("q: x.npy holds 1e+39 (element 5), which float32 does not reach");
}

TEST(test_refused_contents) {
  static const struct {
    const char *dict, *sentence;
  } file[] = {
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
       "q: x.npy is big-endian (>f4); little-endian is read"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
       "q: x.npy is in Fortran order; C order is read (numpy.ascontiguousarray)"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }",
       "q: x.npy has elements of type <c8; f2, f4, f8, i4 and i8 are read"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
       "q: x.npy has elements of type |O; f2, f4, f8, i4 and i8 are read"},
      {"{'descr': '', 'fortran_order': False, 'shape': (2,), }",
       "q: x.npy has elements of type ; f2, f4, f8, i4 and i8 are read"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
       "q: x.npy has structured elements; f2, f4, f8, i4 and i8 are read"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 2), }",
       "q: x.npy has rank 6; ranks 0 to 5 are read"},
  };
  for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
    put_npy(1, file[i].dict, six, 8);
    refuses(file[i].sentence);
  }
}

TEST(test_refused_headers) {
  static const struct {
    const char *dict, *expected; /* after "has a bad header: " */
  } file[] = {
      {"", "'{' expected at \"\""},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,),", "a string expected at \"\""},
      {"{'descr': '<f4', 'fortran_order': False}", "no shape"},
      {"{}", "no descr"},
      {"{'descr': '<f4', 'descr': '<f4'}",
       "each of descr, fortran_order and shape once expected at \"'descr': '<f4'}"},
      {"{'name': 'x'}", "each of descr, fortran_order and shape once expected at \"'name': 'x'}"},
      {"{'descr' '<f4'}", "':' expected at \"'<f4'}"},
      {"{'descr': '<f4' 'shape': (2,)}", "',' or '}' expected at \"'shape': (2,)}"},
      {"{'descr': <f4}", "a string expected at \"<f4}"},
      {"{'descr': '<f4}", "a string expected at \"'<f4}"},
      {"{'fortran_order': 0}", "True or False expected at \"0}"},
      {"{'shape': 2}", "'(' expected at \"2}"},
      {"{'shape': (2)}", "a comma in the shape of rank 1 expected at \"}"},
      {"{'shape': (-2,)}", "an extent expected at \"-2,)}"},
      {"{'shape': (2L,)}", "',' or ')' expected at \"L,)}"},
      {"{'shape': (03,)}", "an extent expected at \"03,)}"},
      {"{'shape': (,)}", "an extent expected at \",)}"},
      {"{'shape': (2,,)}", "an extent expected at \",)}"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "nothing more expected at \"x"},
  };
  for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
    fg_array out;
    put_npy(1, file[i].dict, six, 8);
    ck_assert_int_eq(fg_npy_read("q", "x.npy", &out), FG_EARGUMENT);
    static const char start[] = "q: x.npy has a bad header: ";
    ck_assert_mem_eq(fg_error(), start, sizeof start - 1);
    const char *rest = fg_error() + sizeof start - 1;
    ck_assert_msg(!strncmp(rest, file[i].expected, strlen(file[i].expected) - 1), "%s: %s",
                  file[i].dict, rest);
  }
}

/* No byte of a good header can be changed so that the reader crashes or takes what it should not:
 * what it accepts still has six elements. (Run under a sanitizer, this is the parser's fuzzer.) */
TEST(test_mutations) {
  const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  char file[152];
  put_npy(1, dict, six, sizeof six);
  FILE *f = fopen("x.npy", "rb");
  ck_assert_uint_eq(fread(file, 1, sizeof file, f), sizeof file);
  fclose(f);
  static const char value[] = "\0\x01\x02\x7f\xff '\"{}(),:L09\\\n";
  for (size_t at = 0; at < 128; at++)
    for (size_t v = 0; v < sizeof value - 1; v++) {
      char was = file[at];
      file[at] = value[v];
      scratch_put("x.npy", file, sizeof file);
      if (fg_npy_read("q", "x.npy", &array) == FG_OK) ck_assert_int_eq(array.count, 6);
      fg_array_free(&array);
      file[at] = was;
    }
}

TEST_FIXTURE(scratch_enter, leave)
