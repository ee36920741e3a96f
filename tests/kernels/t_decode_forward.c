/* t_decode_forward.c - numbers of decode's forward kernels against the oracle. */
#include "numeric_case.h"

int main(void) { return suite_run(numeric_suite("decode", "forward")); }
