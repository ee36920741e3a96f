/* t_append_forward.c - numbers of new rows of a cache against the oracle. */
#include "design_case.h"

int main(void) { return suite_run(design_suite("append_forward")); }
