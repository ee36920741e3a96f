/* t_decode_forward.c - numbers of decode's forward kernels against the oracle. */
#include "design_case.h"

int main(void) { return suite_run(design_suite("decode_forward")); }
