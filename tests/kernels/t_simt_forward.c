/* t_simt_forward.c - numbers of simt's forward kernels against the oracle. */
#include "numeric_case.h"

int main(void) { return suite_run(numeric_suite("simt", "forward")); }
