/* t_mma_forward.c - numbers of mma's forward kernels against the oracle. */
#include "design_case.h"

int main(void) { return suite_run(design_suite("mma_forward")); }
