/* t_wgmma_backward.c - numbers of wgmma's backward kernels against the oracle. */
#include "design_case.h"

int main(void) { return suite_run(design_suite("wgmma_backward")); }
