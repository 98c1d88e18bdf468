#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the tenth set of jobs (user_job10.py, user_jobs10.list): user_jobs10.sh OUT [AT_ONCE] [CASE ...], as user_jobs8.sh.
here=$(cd "$(dirname "$0")" && pwd)
export LAB_PROGRAM=$here/user_job10.py LAB_LIST=$here/user_jobs10.list LAB_SET=ten
exec "$here/user_jobs8.sh" "$@"
