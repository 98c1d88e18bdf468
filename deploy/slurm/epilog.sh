#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm Epilog (as root, after a job): moves the job's black boxes out of the node's memory, compressed, and forgets old
# ones. A node's epilog is not told how a job ended; a script for EpilogSlurmctld is (SLURM_JOB_EXIT_CODE), and may remove
# the folder of a job that ended well where it lies on a file system that all nodes share.
#   TACET_KEEP_DIR    where boxes are kept (default /var/lib/tacet/boxes): tacet diagnose DIR/JOB reads them as they are
#   TACET_KEEP_DAYS   for how long (default 7)
#   TACET_KEEP_MB     of boxes of one job at most (default 4096)
#
# The folder of a job is its user's, who may put links, pipes and enormous files into it, also while this runs. So root
# does nothing in it: listing, reading and removing are done as that user. What is kept lies in folders of root's, a new
# one for each run of a job; only the finished files are given to the user.
set -u
umask 077
job=${SLURM_JOB_ID:-}
uid=${SLURM_JOB_UID:-}
case $job in '' | *[!0-9]*) exit 0 ;; esac
case $uid in '' | *[!0-9]*) exit 0 ;; esac
root=${TACET_BOX_DIR:-/dev/shm/tacet}
keep=${TACET_KEEP_DIR:-/var/lib/tacet/boxes}
most_mb=${TACET_KEEP_MB:-4096}
box_mb=256       # the largest box there is: TACET_BOX_MB goes no further
most_boxes=4096
most_seconds=100 # of reading; slurmd waits for this script

say() {
  echo "tacet epilog: $*" >&2
}

is_folder_of() {
  [ ! -L "$1" ] && [ -d "$1" ] && [ "$(stat -c %u -- "$1")" = "$2" ]
}

# No file larger than a box can be written, by whatever the user turns the command into.
as_user() {
  if [ "$(id -u)" = "$uid" ]; then
    env -i PATH=/usr/bin:/bin "$@"
  else
    setpriv --reuid "$uid" --regid "$gid" --clear-groups --inh-caps=-all --no-new-privs env -i PATH=/usr/bin:/bin "$@"
  fi
}

gid=$(getent passwd "$uid" | cut -d: -f4)
: "${gid:=$uid}"
ulimit -f $((box_mb * 2048))
[ ! -L "$root" ] && [ -d "$root" ] || exit 0

# Name, size and blocks of the boxes in the folder $1. A box is reserved as a whole, so one with holes is none.
list_boxes() {
  as_user timeout 20 find "$1" -mindepth 1 -maxdepth 1 -type f -name '*.box' -printf '%s %b %f\n' 2>/dev/null |
    head -n "$most_boxes"
}

keep_boxes() {
  list_boxes "$1" | while read -r size blocks name; do
    case $size$blocks in *[!0-9]*) continue ;; esac
    case $name in .* | -* | *[!A-Za-z0-9._-]*) continue ;; *.box) ;; *) continue ;; esac
    [ "${#name}" -le 200 ] || continue
    if [ "$size" -gt $((box_mb * 1048576)) ] || [ $((blocks * 512 + 65536)) -lt "$size" ]; then
      say "$1/$name is no box (larger than one, or with holes) and is not kept"
      continue
    fi
    used=$((used + size / 1048576))
    if [ "$used" -gt "$most_mb" ] || [ "$(date +%s)" -ge "$until" ]; then
      say "job $job has more boxes than are kept"
      break
    fi
    # shellcheck disable=SC2016 # the inner shell expands them
    # The output is root's, new, and in a folder of root's; all that reads the user's file is the user.
    [ -e "$kept/$name.gz" ] && continue
    as_user timeout 30 sh -c 'dd if="$1" iflag=nofollow,nonblock bs=1M count="$2" status=none | nice gzip -1' \
      sh "$1/$name" "$box_mb" >"$kept/$name.gz" 2>/dev/null
    chown -h "$uid" -- "$kept/$name.gz"
    chmod 0400 -- "$kept/$name.gz"
  done
}

kept=
used=0
until=$(($(date +%s) + most_seconds))
for folder in "$root/$job" "$root/$job.$uid" "$root/$job.$uid."*; do
  is_folder_of "$folder" "$uid" || continue
  if [ -z "$kept" ] && install -d -o root -m 0711 -- "$keep" && ! [ -L "$keep" ]; then
    # Others may see that there is a folder, as they see the job in the queue; the files are the user's alone.
    if [ -d "$keep/$job" ] || mkdir -m 0755 -- "$keep/$job"; then
      is_folder_of "$keep/$job" 0 && kept=$(mktemp -d -- "$keep/$job/$(date +%Y%m%dT%H%M%S).XXXXXX") && chmod 0755 -- "$kept"
    fi
  fi
  [ -n "$kept" ] && keep_boxes "$folder"
  as_user timeout 30 rm -rf -- "$folder" 2>/dev/null
  # Its parent is root's: the name can only go with root's help, and only when the folder is empty.
  [ -e "$folder" ] && rmdir -- "$folder" 2>/dev/null
done
[ -n "$kept" ] && rmdir -- "$kept" "$keep/$job" 2>/dev/null  # where nothing was kept
find "$keep" -mindepth 1 -maxdepth 1 -type d -name '[0-9]*' -mtime "+${TACET_KEEP_DAYS:-7}" -exec rm -rf {} + 2>/dev/null
exit 0
