#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm Prolog (as root, before a job): the box folder, shared by all users of the node, like /tmp.
exec install -d -m 1777 "${TACET_BOX_DIR:-/dev/shm/tacet}"
