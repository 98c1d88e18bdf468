// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/format.h"
#include "evidence/torch_log/torch_log_parse.h"

namespace tacet {

void ImportTorchLog(const TorchLog& log, std::string_view path, Fragment& out);
void ReadTorchLog(const FileView& file, Fragment& out);

}  // namespace tacet
