/* t_mma_forward.c - numbers of mma's forward kernels against the oracle. */
#include "numeric_case.h"

int main(void) { return suite_run(numeric_suite("mma", "forward")); }
