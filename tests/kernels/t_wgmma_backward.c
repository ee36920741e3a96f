/* t_wgmma_backward.c - numbers of wgmma's backward kernels against the oracle. */
#include "numeric_case.h"

int main(void) { return suite_run(numeric_suite("wgmma", "backward")); }
