/* t_simt_forward.c - numbers of simt's forward kernels against the oracle. */
#include "design_case.h"

int main(void) { return suite_run(design_suite("simt_forward")); }
