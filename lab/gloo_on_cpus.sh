#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Read by user_jobs14.sh and user_jobs15.sh: with LAB_DEVICE=cpu jobs run on CPUs with gloo and PyTorch 1.13, two at once.
if [ "${LAB_DEVICE:-cuda}" = cpu ]; then
  export LAB_MOST=2 LAB_PYTHON=${LAB_PYTHON:-/usr/bin/python3}
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
fi
