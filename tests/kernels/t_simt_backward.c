/* t_simt_backward.c - numbers of simt's backward kernels against the oracle. */
#include "numeric_case.h"

int main(void) { return suite_run(numeric_suite("simt", "backward")); }
