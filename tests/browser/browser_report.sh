#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# browser_report.sh WRITER: opens the sample reports in a real browser. Answers 77 (skipped) where there is none.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v node > /dev/null || { echo "no node: skipped"; exit 77; }
for browser in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$browser" > /dev/null && break
  browser=
done
[ -n "$browser" ] || { echo "no Chromium: skipped"; exit 77; }
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$1" "$pages"
node "$here/browser_report.mjs" "$(command -v "$browser")" "$pages"
