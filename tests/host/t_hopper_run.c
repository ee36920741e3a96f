/* t_hopper_run.c - a pipeline of TMA, mbarriers, warpgroups and the pool of registers gives right
 * numbers on a device: the host device in many orders of threads, a GPU by the gpu label. */
#include "hopper_attention.h"
#include "templates.h"

START_TEST(the_kernel_is_right) {
  static const int lengths[] = {1, 63, 64, 65, 200, NK_MAX};
  static float want[NQ * D];
  hopper h = begin(pipeline, lengths[_i], want);
  for (int seed = 0; seed < 18; seed++) {
    kernel_device()->seed = (uint64_t)seed;
    hopper_run(&h);
    ck_assert_msg(right(&h, want), "wrong, seed %d", seed);
  }
  hopper_free(&h);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("hopper run");
  TCase *tests = tcase_create("run");
  hopper_device();
  tcase_add_checked_fixture(tests, templates_enter, templates_leave);
  suite_loop(tests, the_kernel_is_right, 6);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
