#include "tests/libcheck.h"
int main(void) { return 0; }
