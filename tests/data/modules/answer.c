/* What test artifacts are made of: one function, one variable, one helper whose name other modules use too. */
#include <math.h>

#ifndef ANSWER
#define ANSWER 42.0
#endif

double table[2] = {ANSWER, 1.0};

double helper(double x) { return x * ANSWER; }

double answer(double x) { return helper(x) + cos(x * 0.0) - 1.0; }
