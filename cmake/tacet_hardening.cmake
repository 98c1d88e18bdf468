# SPDX-License-Identifier: Apache-2.0
# What compiler, linker and loader offer against memory errors in a program that reads hostile input as root. The compiler's
# part is for builds that are installed (Release): sanitizers see more, and the preset dev shares its cache.
include(CheckCXXCompilerFlag)
# Compilers of today's distributions make programs that can be loaded anywhere (PIE) by themselves; the test `hardening`
# tells where one does not.
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT TACET_SANITIZE AND NOT TACET_FUZZ AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  set(CMAKE_REQUIRED_FLAGS -Werror)  # clang only warns about a flag of another processor
  foreach(flag -fstack-clash-protection -fcf-protection -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "TACET_HAS${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options(${flag})
    endif()
  endforeach()
  unset(CMAKE_REQUIRED_FLAGS)
endif()
