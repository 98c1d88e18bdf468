#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build and the tests need on Debian 12 or Ubuntu 24.04 and newer. Does nothing when all is there.
# usage: scripts/bootstrap.sh [build|test|bench]
set -euo pipefail

build_packages=(g++ make cmake ninja-build pkg-config ccache zlib1g-dev libzstd-dev)
test_packages=(libgtest-dev python3 chromium)
bench_packages=(libbenchmark-dev python3 zstd)

packages=("${build_packages[@]}")
case "${1:-build}" in
  build) ;;
  test) packages+=("${test_packages[@]}") ;;
  bench) packages+=("${bench_packages[@]}") ;;
  *) echo "usage: $0 [build|test|bench]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
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
for package in "${missing[@]}"; do
  # Some are only there for extra tests: Ubuntu has chromium as a snap, for instance. What needs them skips and says so.
  if ! "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$package" >/tmp/tacet-apt.$$ 2>&1; then
    case "$package" in
      chromium|ccache) echo "tacet: $package could not be installed; going on without it" ;;
      *) cat /tmp/tacet-apt.$$ >&2; rm -f /tmp/tacet-apt.$$; exit 1 ;;
    esac
  fi
done
rm -f /tmp/tacet-apt.$$
