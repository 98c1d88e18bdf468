#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the fourteenth set of jobs (user_job14.py, user_jobs14.list): user_jobs14.sh OUT [AT_ONCE] [CASE ...], as user_jobs8.sh. With LAB_DEVICE=cpu on CPUs with gloo and PyTorch 1.13, as user_jobs13.sh.
here=$(cd "$(dirname "$0")" && pwd)
export LAB_PROGRAM=$here/user_job14.py LAB_LIST=$here/user_jobs14.list LAB_SET=fourteen
. "$here/gloo_on_cpus.sh"
"$here/user_jobs8.sh" "$@"
