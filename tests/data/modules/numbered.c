/* The factor is a pattern of bytes that tests replace in the file: each of their modules then computes another number. */
static const volatile double factor = 0x1.23456789abcdep+777;

double answer(double x) { return factor * x; }
