#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build and the tests need on Debian 12 or Ubuntu 24.04 and newer. Does nothing when all is there.
# usage: scripts/bootstrap.sh [build|test|deb|bench|fuzz|dist|check|torch]
set -euo pipefail

# package:what shows that it is there (a command, or a file)
build_packages=(g++:g++ make:make cmake:cmake ninja-build:ninja pkg-config:pkg-config ccache:ccache
                zlib1g-dev:/usr/include/zlib.h libzstd-dev:/usr/include/zstd.h libsqlite3-dev:/usr/include/sqlite3.h libssl-dev:/usr/include/openssl/ssl.h libcrypt-dev:/usr/include/crypt.h)
test_packages=(libgtest-dev:/usr/include/gtest/gtest.h python3:python3 nodejs:node chromium:chromium
               prometheus:promtool prometheus-node-exporter:prometheus-node-exporter clickhouse-server:clickhouse-server
               python3-yaml:/usr/lib/python3/dist-packages/yaml/__init__.py dpkg-dev:dpkg-shlibdeps file:file openssl:openssl
               munge:munged slurm-client:srun slurmctld:slurmctld slurmd:slurmd openmpi-bin:mpirun
               iproute2:ip zstd:zstd openssh-client:ssh openssh-server:/usr/sbin/sshd)
bench_packages=(libbenchmark-dev:/usr/include/benchmark/benchmark.h python3:python3 zstd:zstd time:/usr/bin/time)
fuzz_packages=(clang-16:clang++-16)
dist_packages=(clang-16:clang++-16 lld-16:ld.lld-16 debian-archive-keyring:/usr/share/keyrings/debian-archive-keyring.gpg python3:python3)
check_packages=(clang-16:clang++-16 libc++-16-dev:/usr/lib/llvm-16/include/c++/v1/string libc++abi-16-dev:/usr/lib/llvm-16/lib/libc++abi.a
                clang-format:clang-format-diff clang-tidy:clang-tidy libgtest-dev:/usr/include/gtest/gtest.h
                libbenchmark-dev:/usr/include/benchmark/benchmark.h python3:python3 nodejs:node npm:npm)
# A PyTorch without GPU, for `make hang`; nothing else needs it.
torch_packages=(python3:/usr/bin/python3 python3-torch:/usr/lib/python3/dist-packages/torch/__init__.py)

wanted=("${build_packages[@]}")
case "${1:-build}" in
  build) ;;
  test) wanted+=("${test_packages[@]}") ;;
  deb) wanted+=(dpkg-dev:dpkg-shlibdeps file:file) ;;
  bench) wanted+=("${bench_packages[@]}") ;;
  fuzz) wanted+=("${fuzz_packages[@]}") ;;
  dist) wanted+=("${dist_packages[@]}") ;;
  check) wanted+=("${check_packages[@]}") ;;
  torch) wanted=("${torch_packages[@]}") ;;
  *) echo "usage: $0 [build|test|deb|bench|fuzz|dist|check|torch]" >&2; exit 2 ;;
esac

missing=()
for entry in "${wanted[@]}"; do
  sign=${entry#*:}
  if [[ $sign == /* ]]; then [ -e "$sign" ] || missing+=("${entry%%:*}")
  else command -v "$sign" >/dev/null || missing+=("${entry%%:*}"); fi
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "tacet: this system has no apt-get; please install the equivalents of: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "tacet: please install as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "tacet: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
# Tests start servers themselves: the packages' own services stay off.
policy=/usr/sbin/policy-rc.d
if [[ " ${missing[*]} " =~ \ (prometheus|clickhouse|munge|slurm|openssh-server) ]] && [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
  "${as_root[@]}" chmod 755 $policy
  trap '"${as_root[@]}" rm -f $policy' EXIT
fi
# All at once is much faster; one by one where one of them cannot be installed.
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/tmp/tacet-apt.$$ 2>&1 && missing=()
for package in "${missing[@]}"; do
  # Some are only there for extra tests: Ubuntu has chromium as a snap, for instance. What needs them skips and says so.
  if ! "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$package" >/tmp/tacet-apt.$$ 2>&1; then
    case "$package" in
      chromium|nodejs|npm|ccache|clickhouse-server|munge|slurm*|openmpi-bin|iproute2|openssh-*) echo "tacet: $package could not be installed; going on without it" ;;
      *) cat /tmp/tacet-apt.$$ >&2; rm -f /tmp/tacet-apt.$$; exit 1 ;;
    esac
  fi
done
rm -f /tmp/tacet-apt.$$
