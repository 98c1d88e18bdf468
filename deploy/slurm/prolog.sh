#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm Prolog (as root, before a job): the box folder, shared by all users of the node like /tmp, and in it a folder for
# this job that is its user's alone.
#   TACET_BOX_DIR   default /dev/shm/tacet; its parent must be root's, and sticky where others may write to it
#
# A user may have been there first, with a folder, a file or a link of the same name. None of that is followed, changed or
# used: it is put aside and removed. What root has made in a sticky folder of root's, nobody else can replace.
set -u
umask 077
root=${TACET_BOX_DIR:-/dev/shm/tacet}
job=${SLURM_JOB_ID:-}
uid=${SLURM_JOB_UID:-}
parent=$(dirname -- "$root")

say() {
  echo "tacet prolog: $*" >&2
}

# True for a folder itself, not a link to one, that belongs to the given uid.
is_folder_of() {
  [ ! -L "$1" ] && [ -d "$1" ] && [ "$(stat -c %u -- "$1")" = "$2" ]
}

# True where nobody but root can rename or remove what root has put there.
is_safe() {
  is_folder_of "$1" 0 || return 1
  mode=$(stat -c %a -- "$1")
  case $mode in
    1???) return 0 ;;                       # sticky
    *[2367]? | *[2367]) return 1 ;;         # others may write
  esac
}

# Renames what stands at $1 into a new folder of root's, and removes it from there without waiting: it may be large.
put_aside() {
  aside=$(mktemp -d -- "$parent/.tacet-aside.XXXXXXXXXX") || return 1
  mv -T -- "$1" "$aside/found" || { rmdir -- "$aside"; return 1; }
  (timeout 300 nice rm -rf --one-file-system -- "$aside" >/dev/null 2>&1 &)
}

# $1 is a folder of root's after this, or the script ends. Jobs start all the same: a box is not worth a job.
make_folder() {
  for _ in 1 2 3 4 5; do
    is_folder_of "$1" 0 && return 0
    if [ -e "$1" ] || [ -L "$1" ]; then
      say "$1 was made by uid $(stat -c %u -- "$1"), not by root; it is put aside"
      put_aside "$1"
    fi
    mkdir -m 0700 -- "$1" 2>/dev/null
  done
  is_folder_of "$1" 0
}

is_safe "$parent" || { say "$parent is not root's alone: no box folder is made there"; exit 0; }
make_folder "$root" || { say "cannot make $root"; exit 0; }
[ "$(stat -c %a -- "$root")" = 1777 ] || chmod 1777 -- "$root"

# The job's own folder, so that nobody can take its name before the job's first process comes.
case $job in '' | *[!0-9]*) exit 0 ;; esac
case $uid in '' | *[!0-9]*) exit 0 ;; esac
is_folder_of "$root/$job" "$uid" && [ "$(stat -c %a -- "$root/$job")" = 700 ] && exit 0  # requeued
parent=$root
make_folder "$root/$job" || { say "cannot make $root/$job"; exit 0; }
chown -h "$uid" -- "$root/$job"
exit 0
