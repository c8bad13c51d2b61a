/* The C99 complex arithmetic library's declarations. */
#ifndef JITC_BUILTIN_COMPLEX_H
#define JITC_BUILTIN_COMPLEX_H

#define complex _Complex
#define _Complex_I (__extension__ 1.0iF)
#define I _Complex_I

#define JITC_COMPLEX(f) \
  double _Complex f(double _Complex); \
  float _Complex f##f(float _Complex); \
  long double _Complex f##l(long double _Complex);
#define JITC_REAL(f) \
  double f(double _Complex); \
  float f##f(float _Complex); \
  long double f##l(long double _Complex);

JITC_COMPLEX(cacos) JITC_COMPLEX(casin) JITC_COMPLEX(catan) JITC_COMPLEX(ccos) JITC_COMPLEX(csin) JITC_COMPLEX(ctan)
JITC_COMPLEX(cacosh) JITC_COMPLEX(casinh) JITC_COMPLEX(catanh) JITC_COMPLEX(ccosh) JITC_COMPLEX(csinh)
JITC_COMPLEX(ctanh) JITC_COMPLEX(cexp) JITC_COMPLEX(clog) JITC_COMPLEX(csqrt) JITC_COMPLEX(conj) JITC_COMPLEX(cproj)
JITC_REAL(cabs) JITC_REAL(carg) JITC_REAL(cimag) JITC_REAL(creal)

double _Complex cpow(double _Complex, double _Complex);
float _Complex cpowf(float _Complex, float _Complex);
long double _Complex cpowl(long double _Complex, long double _Complex);

#undef JITC_COMPLEX
#undef JITC_REAL

#endif
