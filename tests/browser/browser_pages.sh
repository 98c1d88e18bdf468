#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# browser_pages.sh TACET SOURCES layout|axe: every page in a real browser. Answers 77 (skipped) where there is none, or no axe-core.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v node > /dev/null || { echo "no node: skipped"; exit 77; }
for browser in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$browser" > /dev/null && break
  browser=
done
[ -n "$browser" ] || { echo "no Chromium: skipped"; exit 77; }
if [ "$3" = axe ] && [ ! -e "$2/web/node_modules/axe-core/axe.min.js" ]; then
  command -v npm > /dev/null || { echo "no axe-core and no npm: skipped"; exit 77; }
  timeout 200 npm ci --prefix "$2/web" --ignore-scripts --no-audit --no-fund > /dev/null 2>&1 || true
  [ -e "$2/web/node_modules/axe-core/axe.min.js" ] || { echo "axe-core cannot be installed from npm: skipped"; exit 77; }
fi
exec node "$here/browser_pages.mjs" "$(command -v "$browser")" "$1" "$2" "$3"
