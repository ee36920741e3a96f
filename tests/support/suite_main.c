/* suite_main.c - the program of a suite that has no main() of its own. */
#include "suite.h"

int main(void) { return suite_main(); }
