/* t_mma_backward.c - numbers of mma's backward kernels against the oracle. */
#include "design_case.h"

int main(void) { return suite_run(design_suite("mma_backward")); }
