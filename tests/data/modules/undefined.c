/* Compiles and links, cannot be loaded: nobody defines this. */
double defined_nowhere(double x);

double answer(double x) { return defined_nowhere(x); }
