#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian 12 of this machine's architecture with nothing but its base, for the tests beside this one, if it is not there.
# usage: tests/dist/debian_base.sh FOLDER      (needs root and debootstrap)
set -euo pipefail
base=$1
[ -e "$base/.complete" ] && exit 0
rm -rf "$base" && mkdir -p "$base"
debootstrap --variant=minbase bookworm "$base" "${TACET_DEBIAN_MIRROR:-http://deb.debian.org/debian}" > "$base.log" 2>&1 ||
  { tail -5 "$base.log" >&2; exit 1; }
rm -rf "$base"/var/cache/apt/archives/*.deb "$base"/var/lib/apt/lists/*
touch "$base/.complete"
