#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the fifteenth set of jobs (user_job15.py, user_jobs15.list): user_jobs15.sh OUT [AT_ONCE] [CASE ...], as user_jobs8.sh. With LAB_DEVICE=cpu on CPUs with gloo and PyTorch 1.13, as user_jobs13.sh.
here=$(cd "$(dirname "$0")" && pwd)
export LAB_PROGRAM=$here/user_job15.py LAB_LIST=$here/user_jobs15.list LAB_SET=fifteen LAB_MOST=${LAB_MOST:-9}
. "$here/gloo_on_cpus.sh"
"$here/user_jobs8.sh" "$@"
