#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm Epilog (as root, after a job): moves the job's black boxes out of the node's memory, compressed, and forgets old
# ones. A node's epilog is not told how a job ended; a script for EpilogSlurmctld is (SLURM_JOB_EXIT_CODE), and may remove
# the folder of a job that ended well where it lies on a file system that all nodes share.
#   TACET_KEEP_DIR    where boxes are kept (default /var/lib/tacet/boxes): tacet diagnose DIR/JOB reads them as they are
#   TACET_KEEP_DAYS   for how long (default 7)
job=$SLURM_JOB_ID
case $job in '' | *[!0-9]*) exit 0 ;; esac
root=$(cd "${TACET_BOX_DIR:-/dev/shm/tacet}" && pwd -P) || exit 0
keep=${TACET_KEEP_DIR:-/var/lib/tacet/boxes}
# The folder is the user's, who may put links into it, or in its place, at any moment: none is followed.
cd "$root/$job" 2>/dev/null && [ "$(pwd -P)" = "$root/$job" ] || exit 0

if install -d -m 0711 "$keep" && install -d -m 0700 "$keep/$job"; then
  for box in *.box; do
    [ -f "$box" ] && [ ! -L "$box" ] || continue
    dd if="./$box" iflag=nofollow,nonblock bs=1M status=none | nice gzip -1 >"$keep/$job/$box.gz"
  done
  [ -n "$SLURM_JOB_UID" ] && chown -R "$SLURM_JOB_UID" "$keep/$job"
fi
cd / && rm -rf "${root:?}/$job"
find "$keep" -mindepth 1 -maxdepth 1 -type d -name '[0-9]*' -mtime "+${TACET_KEEP_DAYS:-7}" -exec rm -rf {} +
exit 0
