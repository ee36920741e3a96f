/* t_wgmma_forward.c - numbers of wgmma's forward kernels against the oracle. */
#include "numeric_case.h"

int main(void) { return suite_run(numeric_suite("wgmma", "forward")); }
