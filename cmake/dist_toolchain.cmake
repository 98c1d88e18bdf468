# SPDX-License-Identifier: Apache-2.0
# For tarball and wheel: clang against the folder that scripts/dist_sysroot.sh fills, so that the result of any machine
# runs on any Linux with glibc 2.28 or newer. TACET_DIST_ARCH: x86_64 or aarch64.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TACET_DIST_ARCH TACET_DIST_SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${TACET_DIST_ARCH})
set(triplet ${TACET_DIST_ARCH}-linux-gnu)
set(CMAKE_SYSROOT ${TACET_DIST_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_TARGET ${triplet})
  set(CMAKE_${language}_LIBRARY_ARCHITECTURE ${triplet})
endforeach()
# By its real place: clang would find it below /lib, a link, and ninja, which shortens a/b/.. by the letters alone, would look
# for the headers where none are and compile everything again each time.
set(CMAKE_CXX_FLAGS_INIT "--gcc-install-dir=${CMAKE_SYSROOT}/usr/lib/gcc/${triplet}/12")
set(CMAKE_C_FLAGS_INIT "${CMAKE_CXX_FLAGS_INIT}")
set(CMAKE_C_COMPILER clang-16)
set(CMAKE_CXX_COMPILER clang++-16)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/${triplet}/pkgconfig)
set(OPENSSL_USE_STATIC_LIBS TRUE)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld -static-libstdc++ -static-libgcc -Wl,--gc-sections,--strip-all")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-fuse-ld=lld -static-libstdc++ -static-libgcc")
set(CMAKE_CXX_STANDARD_LIBRARIES "-lpthread -ldl -lm")
