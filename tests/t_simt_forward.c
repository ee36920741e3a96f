/* t_simt_forward.c - numbers of simt's forward kernels on the host device. */
#include "simt_case.h"

int main(void) { return suite_run(simt_suite("forward")); }
