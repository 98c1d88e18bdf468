// SPDX-License-Identifier: Apache-2.0
// Only in the tool that `make dist` builds, which has to run on glibc 2.28. The linker turns every call of pow, in our
// sources and in the static libraries, into one of __wrap_pow; from here it goes to the version from before 2.29.
#define TACET_OLD_MATH_WRAPPED
#include "portable/old_math_names.h"

TACET_OLD_MATH(tacet_old_exp, exp);
TACET_OLD_MATH(tacet_old_exp2, exp2);
TACET_OLD_MATH(tacet_old_log, log);
TACET_OLD_MATH(tacet_old_log2, log2);
TACET_OLD_MATH(tacet_old_pow, pow);

extern "C" {

double tacet_old_exp(double);
double tacet_old_exp2(double);
double tacet_old_log(double);
double tacet_old_log2(double);
double tacet_old_pow(double, double);
double __wrap_exp(double x) { return tacet_old_exp(x); }
double __wrap_exp2(double x) { return tacet_old_exp2(x); }
double __wrap_log(double x) { return tacet_old_log(x); }
double __wrap_log2(double x) { return tacet_old_log2(x); }
double __wrap_pow(double x, double y) { return tacet_old_pow(x, y); }

}  // extern "C"
