// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/format.h"

namespace tacet {

void ReadTopologyXml(const FileView& file, Fragment& out);

}  // namespace tacet
