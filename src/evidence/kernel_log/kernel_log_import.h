// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/kernel_log/kernel_log_parse.h"
#include "model/fragment.h"

namespace tacet {

void ImportKernelLog(const KernelLog& log, Fragment& out);

}  // namespace tacet
