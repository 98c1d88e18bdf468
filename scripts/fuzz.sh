#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets of a build one after the other, each with the samples of its format as a start. What they find
# lies in BUILD/fuzz. usage: scripts/fuzz.sh BUILD [TARGET] [SECONDS]
set -euo pipefail
build=$(cd "$1" && pwd) only=${2:-} seconds=${3:-600}
here=$(cd "$(dirname "$0")/.." && pwd)
found=0
for program in $(find "$build/src" -name '*_fuzz' -type f -perm -u+x | sort); do
  name=$(basename "$program" _fuzz)
  [ -z "$only" ] || [ "$only" = "$name" ] || continue
  folder=$build/fuzz/$name
  mkdir -p "$folder"
  seeds=("$folder")
  [ -d "$(dirname "${program/$build/$here}")/samples" ] && seeds+=("$(dirname "${program/$build/$here}")/samples")
  echo "== $name, $seconds s"
  (cd "$folder/.." && "$program" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=3000 -artifact_prefix="$name-" "${seeds[@]}" >"$name.log" 2>&1) ||
    { found=1; echo "   finding: $build/fuzz/$name.log"; }
  tail -n 1 "$build/fuzz/$name.log"
done
exit $found
