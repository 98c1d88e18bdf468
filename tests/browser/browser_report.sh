#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# browser_report.sh WRITER [TACET]: opens the sample reports and profiles, or with TACET the live page of a server, in a real browser.
# Answers 77 (skipped) where there is none.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v node > /dev/null || { echo "no node: skipped"; exit 77; }
for browser in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$browser" > /dev/null && break
  browser=
done
[ -n "$browser" ] || { echo "no Chromium: skipped"; exit 77; }
if [ $# -eq 2 ]; then exec node "$here/browser_live.mjs" "$(command -v "$browser")" "$2"; fi
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$1" "$pages"
node "$here/browser_report.mjs" "$(command -v "$browser")" "$pages"
node "$here/browser_profile.mjs" "$(command -v "$browser")" "$pages"
node "$here/browser_topology.mjs" "$(command -v "$browser")" "$pages"
