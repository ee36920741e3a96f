/* t_mma_backward.c - numbers of mma's backward kernels against the oracle. */
#include "numeric_case.h"

int main(void) { return suite_run(numeric_suite("mma", "backward")); }
