// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "model/nccl_graph.h"
#include "predict/nccl_release.h"

namespace tacet {

// What NCCL_ALGO and NCCL_PROTO leave. 2 stands for "not named": LL128 then depends on the paths.
struct NcclFilter {
  int protocols[kNcclTuned][kNcclProtocols];
  int algorithms[kNcclTuned][kNcclAlgorithms];
  std::string complaint;  // why NCCL would refuse the setting; empty where it takes it
  NcclFilter();
};

// Lists as NCCL reads them: "Ring,Tree", "^LL128", since 2.24 also "Ring;allreduce:Tree". Empty: not set.
NcclFilter ReadNcclFilter(const NcclRelease& release, std::string_view algorithms, std::string_view protocols);

}  // namespace tacet
