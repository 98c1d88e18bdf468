// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/source_ref.h"
#include "model/fragment.h"

namespace tacet {

// What a sentence around a log tells in passing, as events that mean in_prose: Xids ("bursts of Xid 94, then Xid 154"),
// the end of a process ("ends with -9"), a GPU's memory error ("due to an uncorrectable ECC error"), the GPUs' power
// beside their utilization ("near 100W of 700W, GPU-Util 100%"). Nothing of a sentence that asks, supposes or denies
// it.
void AddToldFacts(std::string_view line, const SourceRef& source, Fragment& fragment);

// What a sentence says of the machine: an idle GPU, sockets in place of InfiniBand, GPUDirect RDMA that is off.
void AddToldSituation(std::string_view line, const SourceRef& source, Fragment& fragment);

// Gives the Xids of sentences the one PCI address that the text names; of several nobody knows which.
void PlaceToldXids(std::string_view bytes, Fragment& fragment);

}  // namespace tacet
