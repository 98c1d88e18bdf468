#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Headers of the libraries that the sources include, for a machine that has none of them: see on_gpu_machine.sh.
# usage: tests/dist/pack_headers.sh ARCH DIST_FOLDER        (after make dist)
set -euo pipefail
triplet=$1-linux-gnu from=build-dist/sysroot-$1/usr/include to=$2/headers
rm -rf "$to" && mkdir -p "$to/$triplet"
cp -r "$from"/{zlib.h,zconf.h,zstd.h,zstd_errors.h,sqlite3.h,crypt.h,openssl} "$to/"
cp -r "$from/$triplet/openssl" "$to/$triplet/"
cp -r /usr/include/gtest /usr/include/gmock /usr/include/benchmark "$to/"
