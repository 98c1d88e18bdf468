#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fills a folder with what a program for any Linux since 2019 is linked against: the C library of Debian 11, whose newest
# symbols of use are older than glibc 2.29, and the static libraries of Debian 12. Needs no root: packages are fetched
# with apt's own checks of signatures and unpacked into the folder.
# usage: scripts/dist_sysroot.sh x86_64|aarch64 FOLDER
set -euo pipefail

case "${1:-}" in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) echo "usage: $0 x86_64|aarch64 FOLDER" >&2; exit 2 ;;
esac
folder=$(mkdir -p "$2" && cd "$2" && pwd)
mirror=${TACET_DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
old=(libc6 libc6-dev linux-libc-dev)
new=(gcc-12-base libgcc-12-dev libstdc++-12-dev libgcc-s1 libstdc++6 libssl-dev zlib1g-dev libzstd-dev libsqlite3-dev libcrypt-dev)
stamp="$folder/.complete"
wanted="$architecture ${old[*]} ${new[*]}"
[ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

# Packages of one suite for one architecture, whatever this machine's own are: apt with a state of its own.
fetch() {
  local suite=$1 state="$folder/.apt/$1"; shift
  mkdir -p "$state"/{lists/partial,archives/partial,etc,packages}
  : > "$state/status"
  { echo "deb [arch=$architecture signed-by=$keyring] $mirror $suite main"
    # What is linked in has to be the mended one; of Debian 11 nothing but names is taken.
    [ "$suite" = bullseye ] || echo "deb [arch=$architecture signed-by=$keyring] $mirror-security $suite-security main"
  } > "$state/sources.list"
  local options=(-qq -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::State::lists="$state/lists"
    -o Dir::Cache="$state" -o Dir::Cache::archives="$state/archives" -o Dir::Etc::sourcelist="$state/sources.list"
    -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o APT::Architecture="$architecture"
    -o APT::Architectures="$architecture" -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none)
  apt-get "${options[@]}" update
  (cd "$state/packages" && rm -f ./*.deb && apt-get "${options[@]}" download "$@")
}

echo "tacet: fetching the libraries for $1"
rm -rf "${folder:?}/usr" "${folder:?}/lib" "${folder:?}/lib64" "${folder:?}/versions" "$stamp"
mkdir -p "$folder/usr/lib"
ln -s usr/lib "$folder/lib"
if [ "$architecture" = amd64 ]; then mkdir -p "$folder/usr/lib64"; ln -s usr/lib64 "$folder/lib64"; fi
fetch bullseye "${old[@]}"
fetch bookworm "${new[@]}"
for package in "$folder"/.apt/bookworm/packages/*.deb "$folder"/.apt/bullseye/packages/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --keep-directory-symlink --no-same-owner
  # Name, version and source of each, for the bill of materials.
  dpkg-deb -W --showformat='${Package} ${Version} ${source:Package}\n' "$package" >> "$folder/versions"
done

triplet=$1-linux-gnu
# A static library is taken where there is no shared one; the C library alone stays shared.
rm -f "$folder/usr/lib/$triplet"/lib{ssl,crypto,z,zstd,sqlite3,crypt}.so* "$folder/usr/lib/gcc/$triplet"/12/libstdc++.so \
      "$folder/usr/lib/gcc/$triplet"/12/libgcc_s.so*
# Links between packages are absolute in Debian; here they have to stay inside.
find "$folder/usr" -type l | while read -r link; do
  target=$(readlink "$link")
  [[ $target == /* ]] && ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$folder$target")" "$link"
done || true
rm -rf "$folder/.apt"
echo "$wanted" > "$stamp"
