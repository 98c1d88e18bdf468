// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/fragment.h"

namespace tacet {

// A text says that a job is slow, its log shows that NCCL uses sockets, and beside the log a tool lists an InfiniBand
// or RoCE adapter (ibstat, ibv_devinfo, nvidia-smi topo -m, lspci): adds that the hosts have it.
void AddShownAdapters(std::string_view bytes, Fragment& fragment);

}  // namespace tacet
