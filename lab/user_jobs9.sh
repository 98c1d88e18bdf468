#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the ninth set of jobs (user_job9.py, user_jobs9.list): user_jobs9.sh OUT [AT_ONCE] [CASE ...], as user_jobs8.sh.
here=$(cd "$(dirname "$0")" && pwd)
export LAB_PROGRAM=$here/user_job9.py LAB_LIST=$here/user_jobs9.list LAB_SET=nine
exec "$here/user_jobs8.sh" "$@"
