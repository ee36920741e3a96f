/* t_simt_backward.c - numbers of simt's backward kernels against the oracle. */
#include "design_case.h"

int main(void) { return suite_run(design_suite("simt_backward")); }
