/* t_simt_backward.c - numbers of simt's backward kernels on the host device. */
#include "simt_case.h"

int main(void) { return suite_run(simt_suite("backward")); }
