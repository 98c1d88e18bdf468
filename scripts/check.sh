#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the gate looks at beside the tests: format of changed lines, clang-tidy of changed files, every source under clang with libc++, the pages' scripts, and some seconds of changed inputs for every reader.
# usage: scripts/check.sh [BASE]      BASE: the commit to compare with (default: where this branch left main)
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
base=${1:-}
for candidate in origin/main main; do
  [ -z "$base" ] && base=$(git merge-base HEAD "$candidate" 2>/dev/null)
done
# On main itself: the last commit.
[ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ] && base=$(git rev-parse -q --verify HEAD~1 || git rev-parse HEAD)
failures=()
step() { # name, command...
  local name=$1 begin=$SECONDS; shift
  if "$@"; then echo "check: $name passes ($((SECONDS - begin)) s)"; else echo "check: $name FAILS ($((SECONDS - begin)) s)"; failures+=("$name"); fi
}
# Changed since the base, committed or not, and still there.
changed() { git diff --name-only --diff-filter=d "$base" -- "$@"; }

# Changed lines only, so that nobody has to mend what others wrote.
formatted() {
  local wrong; wrong=$(git diff -U0 --no-color --diff-filter=d "$base" -- '*.cc' '*.h' | clang-format-diff -p1) || return 1
  [ -z "$wrong" ] || { echo "$wrong" | head -60; return 1; }
}

# At most a dozen files, for the time it takes: a change of everything is looked at by `make tidy`.
tidied() {
  cmake --preset dev >/dev/null && ninja -C build-dev tacet_commit >/dev/null &&
    changed 'src/*.cc' | sed -E '/_(test|fuzz)\.cc$|^src\/portable\//d' | head -12 |
    xargs -r -P "$jobs" -n 2 clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument -p build-dev 2>/dev/null
}

# Every source of the program under clang with libc++, in the batches of the build; with libstdc++ GCC compiles all of them
# already. A changed source stands alone under both. TACET_CHECK_ALL=1 takes tests too, and everything under both: three
# times the work.
compiled() {
  local library=$1 alone; alone=$(changed 'src/*.cc' 'plugin/*.cc' 'tests/*.cc' | head -12)
  { [ -z "$alone" ] || TACET_JOBS=$jobs scripts/check_headers.sh clang++-16 "-stdlib=$library" <<< "$alone"; } || return 1
  if [ -n "${TACET_CHECK_ALL:-}" ]; then
    git ls-files '*.cc' | TACET_JOBS=$jobs scripts/check_headers.sh --batch 12 clang++-16 "-stdlib=$library"
  elif [ "$library" = libc++ ]; then
    git ls-files 'src/*.cc' | grep -vE '_(test|fuzz)\.cc$|/testing/' | TACET_JOBS=$jobs scripts/check_headers.sh --batch 12 clang++-16 -stdlib=libc++
  fi
}

# TypeScript and eslint come from npm, pinned by web/package-lock.json. Where the registry cannot be reached the built-in
# lint is all there is, and a line says so.
checked_web() {
  if [ ! -d web/node_modules/typescript ] && command -v npm >/dev/null; then
    timeout 300 npm ci --prefix web --ignore-scripts --no-audit --no-fund >/dev/null 2>&1 || rm -rf web/node_modules
  fi
  node scripts/check_web.mjs
}

smoked() {
  local programs; programs=$(find build-asan/src -name '*_fuzz' -type f -perm -u+x 2>/dev/null)
  [ -n "$programs" ] || { echo "no fuzz targets in build-asan: make sanitize builds them"; return 1; }
  xargs -P "$jobs" -I{} bash -c '
    folder=$(dirname "${1#build-asan/}"); log=$(mktemp)
    seeds=(); for one in "$folder/samples" "$folder/fuzz_corpus"; do [ -d "$one" ] && seeds+=("$one"); done
    timeout 120 "$1" --seconds 2 "${seeds[@]}" > "$log" 2>&1 || { echo "$1: $(head -1 "$log")"; tail -25 "$log"; rm -f "$log"; exit 255; }
    rm -f "$log"' _ {} <<< "$programs"
}

step "format of changed lines" formatted
step "web lint" checked_web
step "clang 16 with libc++" compiled libc++
step "clang 16 with libstdc++" compiled libstdc++
step "clang-tidy of changed files" tidied
if [ -n "${TACET_NO_FUZZ:-}" ]; then echo "check: fuzz smoke was left out"; else step "fuzz smoke" smoked; fi
[ ${#failures[@]} -eq 0 ] || { printf 'check: failed: %s\n' "${failures[@]}"; exit 1; }
