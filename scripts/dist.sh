#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the tarballs and wheels that run on any Linux with glibc 2.28 or newer, with bills of materials and checksums.
# usage: scripts/dist.sh OUT [x86_64|aarch64]...      (default: both; the machine's own first, for man pages and completions)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build-dist/out}
shift || true
own=$(uname -m)
architectures=("$@")
if [ ${#architectures[@]} -eq 0 ]; then
  architectures=(x86_64 aarch64)
  [ "$own" = aarch64 ] && architectures=(aarch64 x86_64)
fi
version=$(sed -nE 's/^project\(tacet VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
mkdir -p "$out"
rm -f "$out"/tacet-* "$out"/SHA256SUMS

for architecture in "${architectures[@]}"; do
  scripts/dist_sysroot.sh "$architecture" "build-dist/sysroot-$architecture"
  cmake --preset "dist-$architecture" >/dev/null
  cmake --build --preset "dist-$architecture" -j "${JOBS:-$(nproc)}"
  stage=build-dist/stage-$architecture
  rm -rf "$stage"
  cmake --install "build-dist-$architecture" --prefix "$stage" >/dev/null
  if [ -z "${shell_files:-}" ]; then
    shell_files=build-dist/shell
    rm -rf $shell_files
    emulator=()
    [ "$architecture" = "$own" ] || emulator=("qemu-$architecture-static" -L "build-dist/sysroot-$architecture")
    scripts/write_shell_files.sh $shell_files "${emulator[@]}" "build-dist-$architecture/tacet"
  fi
  cp -r $shell_files/share "$stage/"
  python3 scripts/make_dist.py "$architecture" "$stage" "build-dist/sysroot-$architecture" "$out" "$version"
done
(cd "$out" && sha256sum tacet-* > SHA256SUMS)
ls -l "$out"
