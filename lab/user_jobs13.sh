#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the thirteenth set of jobs (user_job13.py, user_jobs13.list), on CPUs with gloo and PyTorch 1.13: user_jobs13.sh OUT [AT_ONCE] [CASE ...], as user_jobs8.sh.
here=$(cd "$(dirname "$0")" && pwd)
export LAB_PROGRAM=$here/user_job13.py LAB_LIST=$here/user_jobs13.list LAB_SET=thirteen LAB_MOST=2 LAB_DEVICE=cpu
export LAB_PYTHON=${LAB_PYTHON:-/usr/bin/python3}
if [ -z "${LAB_TORCHRUN:-}" ]; then # of PyTorch 1.13 under Python 3.11, whose flags no longer iterate over 0 and combinations
  bin=$(mktemp -d)
  trap 'rm -rf "$bin"' EXIT
  cat >"$bin/torchrun" <<'RUN'
import re
import sys
from torch.distributed.elastic.multiprocessing import api
number = api.Std.from_str
api.Std.from_str = classmethod(lambda cls, text: cls(int(text)) if re.fullmatch("[0-3]", text) else number(text))
from torch.distributed.run import main
if __name__ == '__main__':
    sys.exit(main())
RUN
  export LAB_TORCHRUN="$LAB_PYTHON $bin/torchrun"
fi
"$here/user_jobs8.sh" "$@"
