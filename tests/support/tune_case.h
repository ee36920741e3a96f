/* tune_case.h - what the suites of `flashgen tune` share: a small grid, and its file of wisdom. */
#ifndef FG_TESTS_TUNE_CASE_H
#define FG_TESTS_TUNE_CASE_H

#include "program.h"
#include "wisdom/wisdom.h"

/* Four plans at two shapes. */
#define SHAPES FLASHGEN_SOURCE "/specs/shapes/small.lua"
#define FOUR   "family=mma block_q=64 --shapes " SHAPES " --device host "
#define TUNE   "tune head_dim=16 " FOUR
#define NAME   "attn_fwd-bf16-d16."

/* The lines of the file, and its measurements, for fg_measured_free. */
fg_wisdom_report tune_count(const char *file);
fg_measured_list tune_list(const char *file);

/* Lines of the status, whose reasons all hold the text; NULL: are empty. */
int tune_having(const char *file, fg_measured_status status, const char *reason);

/* Does a table, JSON of `wisdom show --all` or `tune`, say what the lines of the file say?
 * tests/wisdom_json.py judges; tune_check_json fails the test with what it says. */
bool tune_json_is_right(const char *wisdom, const char *table);
void tune_check_json(const char *wisdom, const char *table);

#endif
