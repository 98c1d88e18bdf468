// SPDX-License-Identifier: Apache-2.0
#pragma once
// Put in front of each source of the plugin by the builds of `make dist`: the calls it makes of libm mean the versions
// from before glibc 2.29, which differ in no result. (The tool has the same from old_math.cc, for the libraries in it.)
#if defined(__x86_64__)
#define TACET_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define TACET_FIRST_GLIBC "GLIBC_2.17"
#else
#error "no tarballs are made for this processor"
#endif
#define TACET_OLD_MATH(mine, name) __asm__(".symver " #mine "," #name "@" TACET_FIRST_GLIBC)
#ifndef TACET_OLD_MATH_WRAPPED
TACET_OLD_MATH(exp, exp);
TACET_OLD_MATH(exp2, exp2);
TACET_OLD_MATH(log, log);
TACET_OLD_MATH(log2, log2);
TACET_OLD_MATH(pow, pow);
#endif
