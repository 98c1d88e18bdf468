#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles sources without making objects, to find what another compiler or standard library would stumble over.
# usage: scripts/check_headers.sh [--batch N] COMPILER [FLAG...] < list of sources
#   --batch N   N sources of a folder at a time in one translation unit: several times faster, but a source may live on
#               what the one before it included. Without it every source stands alone.
# Prints the errors and a line with the count; ends with 1 when a source failed. TACET_JOBS, TACET_SECONDS and
# TACET_HEADERS (a folder with the headers of the libraries) may be set.
set -uo pipefail
batch=1
if [ "${1:-}" = --batch ]; then batch=$2; shift 2; fi
[ $# -ge 1 ] || { echo "usage: $0 [--batch N] COMPILER [FLAG...] < sources" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#define TACET_COMMIT "none"\n' > "$work/tacet_commit.h"
flags=("$@" -std=c++20 -fsyntax-only -w -I"$work" -Isrc -I. '-DTACET_VERSION="0"' '-DTACET_SOURCE_DIR="."'
       '-DTACET_PLUGIN_FILE=""' '-DTACET_FILE=""' '-DTACET_HOST_FILE=""' '-DTACET_TOOL_FILE=""')
[ -n "${TACET_HEADERS:-}" ] && flags+=(-isystem "$TACET_HEADERS" -isystem "$TACET_HEADERS/$(uname -m)-linux-gnu")

# One unit per line of the list: a source, or a file that includes several. Programs have a main or a fuzz entry each.
# Sources that the build keeps out of batches stay alone here, too.
apart=$(grep -rhoE '[a-z_]+\.cc PROPERTIES SKIP_UNITY' src --include=CMakeLists.txt | cut -d' ' -f1 | tr '\n' ' ')
# src/portable is for the folder of scripts/dist_sysroot.sh alone.
awk -v work="$work" -v batch="$batch" -v apart=" $apart" '
  /^src\/portable\// { next }
  { folder = $0; sub(/[^\/]*$/, "", folder); name = $0; sub(/.*\//, "", name)
    alone = batch == 1 || folder !~ /^src\// || index(apart, " " name " ")
    if (alone) { print $0; next }
    kind = folder (name ~ /_test\.cc$/ ? "tests" : name ~ /_fuzz\.cc$/ ? "fuzz" : "code")
    if (!(kind in held) || held[kind] == batch) { held[kind] = 0; unit[kind] = work "/unit_" ++units ".cc"; print unit[kind] }
    ++held[kind]
    printf "#define LLVMFuzzerTestOneInput Entry%d\n#include \"%s\"\n#undef LLVMFuzzerTestOneInput\n", ++entries, $0 >> unit[kind] }
' > "$work/units"
total=$(wc -l < "$work/units")

check_one() {
  local out
  [ -n "$TACET_UNTIL" ] && [ "$(date +%s)" -ge "$TACET_UNTIL" ] && { echo skipped >> "$WORK/skipped"; return; }
  local code=0
  out=$(timeout 900 "${@:2}" "$1" 2>&1) || code=$?
  if [ $code = 0 ]; then echo "$1" >> "$WORK/passed"
  elif [ $code = 124 ]; then echo "TOO SLOW $1"; echo "$1" >> "$WORK/failed"
  else { echo "FAILED $1"; grep -E 'error' <<< "$out" | head -5; } ; echo "$1" >> "$WORK/failed"; fi
}
export -f check_one
export WORK=$work TACET_UNTIL=
[ -n "${TACET_SECONDS:-}" ] && TACET_UNTIL=$(($(date +%s) + TACET_SECONDS))
xargs -a "$work/units" -d '\n' -P "${TACET_JOBS:-$(nproc)}" -I{} bash -c 'check_one "$@"' _ {} "${flags[@]}"
count() { if [ -e "$work/$1" ]; then wc -l < "$work/$1"; else echo 0; fi; }
echo "$*: $(count passed) of $total compile, $(count failed) fail, $(count skipped) not reached"
[ "$(count failed)" = 0 ] && [ "$(count passed)" -gt 0 ]
