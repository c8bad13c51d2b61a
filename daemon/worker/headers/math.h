/* The C99 mathematical library's declarations, for sources that are compiled on nodes without development packages. */
#ifndef JITC_BUILTIN_MATH_H
#define JITC_BUILTIN_MATH_H

#if __FLT_EVAL_METHOD__ == 2
typedef long double float_t;
typedef long double double_t;
#elif __FLT_EVAL_METHOD__ == 1
typedef double float_t;
typedef double double_t;
#else
typedef float float_t;
typedef double double_t;
#endif

#define HUGE_VAL (__builtin_huge_val())
#define HUGE_VALF (__builtin_huge_valf())
#define HUGE_VALL (__builtin_huge_vall())
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))

#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)
#ifdef __FP_FAST_FMA
#define FP_FAST_FMA 1
#endif
#ifdef __FP_FAST_FMAF
#define FP_FAST_FMAF 1
#endif

#define MATH_ERRNO 1
#define MATH_ERREXCEPT 2
#ifdef __NO_MATH_ERRNO__
#define math_errhandling MATH_ERREXCEPT
#else
#define math_errhandling (MATH_ERRNO | MATH_ERREXCEPT)
#endif

#define fpclassify(x) __builtin_fpclassify(FP_NAN, FP_INFINITE, FP_NORMAL, FP_SUBNORMAL, FP_ZERO, x)
#define isfinite(x) __builtin_isfinite(x)
#define isinf(x) __builtin_isinf_sign(x)
#define isnan(x) __builtin_isnan(x)
#define isnormal(x) __builtin_isnormal(x)
#define signbit(x) __builtin_signbit(x)
#define isgreater(x, y) __builtin_isgreater(x, y)
#define isgreaterequal(x, y) __builtin_isgreaterequal(x, y)
#define isless(x, y) __builtin_isless(x, y)
#define islessequal(x, y) __builtin_islessequal(x, y)
#define islessgreater(x, y) __builtin_islessgreater(x, y)
#define isunordered(x, y) __builtin_isunordered(x, y)

#define JITC_1(f) \
  double f(double); \
  float f##f(float); \
  long double f##l(long double);
#define JITC_2(f) \
  double f(double, double); \
  float f##f(float, float); \
  long double f##l(long double, long double);
#define JITC_TO(type, f) \
  type f(double); \
  type f##f(float); \
  type f##l(long double);

JITC_1(acos) JITC_1(asin) JITC_1(atan) JITC_1(cos) JITC_1(sin) JITC_1(tan)
JITC_1(acosh) JITC_1(asinh) JITC_1(atanh) JITC_1(cosh) JITC_1(sinh) JITC_1(tanh)
JITC_1(exp) JITC_1(exp2) JITC_1(expm1) JITC_1(log) JITC_1(log10) JITC_1(log1p) JITC_1(log2) JITC_1(logb)
JITC_1(cbrt) JITC_1(fabs) JITC_1(sqrt) JITC_1(erf) JITC_1(erfc) JITC_1(lgamma) JITC_1(tgamma)
JITC_1(ceil) JITC_1(floor) JITC_1(nearbyint) JITC_1(rint) JITC_1(round) JITC_1(trunc)
JITC_2(atan2) JITC_2(hypot) JITC_2(pow) JITC_2(fmod) JITC_2(remainder) JITC_2(copysign) JITC_2(nextafter)
JITC_2(fdim) JITC_2(fmax) JITC_2(fmin)
JITC_TO(int, ilogb) JITC_TO(long, lrint) JITC_TO(long, lround) JITC_TO(long long, llrint) JITC_TO(long long, llround)

double frexp(double, int *);
float frexpf(float, int *);
long double frexpl(long double, int *);
double ldexp(double, int);
float ldexpf(float, int);
long double ldexpl(long double, int);
double modf(double, double *);
float modff(float, float *);
long double modfl(long double, long double *);
double scalbn(double, int);
float scalbnf(float, int);
long double scalbnl(long double, int);
double scalbln(double, long);
float scalblnf(float, long);
long double scalblnl(long double, long);
double remquo(double, double, int *);
float remquof(float, float, int *);
long double remquol(long double, long double, int *);
double nan(const char *);
float nanf(const char *);
long double nanl(const char *);
double nexttoward(double, long double);
float nexttowardf(float, long double);
long double nexttowardl(long double, long double);
double fma(double, double, double);
float fmaf(float, float, float);
long double fmal(long double, long double, long double);

#ifdef _GNU_SOURCE
JITC_1(exp10)
void sincos(double, double *, double *);
void sincosf(float, float *, float *);
#endif

#undef JITC_1
#undef JITC_2
#undef JITC_TO

#if !defined(__STRICT_ANSI__) || defined(_GNU_SOURCE) || defined(_XOPEN_SOURCE) || defined(_DEFAULT_SOURCE)
double j0(double);
double j1(double);
double jn(int, double);
double y0(double);
double y1(double);
double yn(int, double);
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif

#endif
