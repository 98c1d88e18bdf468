// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// A program that does not accept its command line, as argparse, click, Hydra and absl say it.
LineUse ReadUsageError(const LogLine& line, RecordList& out);

}  // namespace tacet
