// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// Steps, settings and names by the library that speaks: those of NCCL and torchrun are of no use for another.

// "HCCL", "oneCCL"; "NCCL" where no other is told.
std::string_view LibraryName(Library library);
// The same of an event: RCCL writes as NCCL does, and is told from it by the GPUs.
std::string_view LibraryName(const Incident& incident, const Event& event);
// What the ranks of a job join before they can communicate: "process-group setup".
std::string_view SetupName(Library library);
// Against a rank that never joined; empty: the rule's own.
std::vector<std::string> MissingRankSteps(Library library);
// After an error of the library itself; empty: NCCL's.
std::vector<std::string> LibraryErrorSteps(const Event& error);
// While a job hangs; empty: NCCL's.
std::vector<std::string> LibraryHangSteps(const Event& told);
// What to capture next time; empty: NCCL's.
std::string LibraryCapture(Library library);
// Another port for it; empty: PyTorch's.
std::vector<std::string> LibraryPortSteps(Library library);

}  // namespace tacet
