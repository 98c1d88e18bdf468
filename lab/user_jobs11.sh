#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the eleventh set of jobs (user_job11.py, user_jobs11.list): user_jobs11.sh OUT [AT_ONCE] [CASE ...], as user_jobs8.sh.
here=$(cd "$(dirname "$0")" && pwd)
export LAB_PROGRAM=$here/user_job11.py LAB_LIST=$here/user_jobs11.list LAB_SET=eleven LAB_MOST=10
exec "$here/user_jobs8.sh" "$@"
