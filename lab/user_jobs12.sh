#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the twelfth set of jobs (user_job12.py, user_jobs12.list), on CPUs with gloo and PyTorch 1.13: user_jobs12.sh OUT [AT_ONCE] [CASE ...], as user_jobs8.sh.
here=$(cd "$(dirname "$0")" && pwd)
export LAB_PROGRAM=$here/user_job12.py LAB_LIST=$here/user_jobs12.list LAB_SET=twelve LAB_MOST=3 LAB_DEVICE=cpu
export LAB_PYTHON=${LAB_PYTHON:-/usr/bin/python3} LAB_TORCHRUN=${LAB_TORCHRUN:-/usr/bin/python3 -m torch.distributed.run}
exec "$here/user_jobs8.sh" "$@"
