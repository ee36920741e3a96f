/* t_wgmma_forward.c - numbers of wgmma's forward kernels against the oracle. */
#include "design_case.h"

int main(void) { return suite_run(design_suite("wgmma_forward")); }
