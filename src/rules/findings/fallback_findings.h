// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/unexplained/told_finding.h"

namespace tacet {

// A slower transport than the hosts have, told by these events.
Finding FallbackFinding(const ToldEvents& told);

// A network plugin of NCCL other than the one for libfabric, by its own name: "FasTrak"; empty where it is that one, or
// none is named.
std::string OtherPlugin(const ToldEvents& told);
Finding OtherPluginFinding(const std::string& plugin, const ToldEvents& told, const ToldEvents& socket);

// Open MPI says so itself, and goes on over another transport.
Finding MpiFallbackFinding(const ToldEvents& told);

// No adapter is named, so none is there, and the program prints on behind the note: nothing is lost. MPI may carry
// none of its data at all.
bool IsNoteOfNoAdapter(const Case& facts, const ToldEvents& told);

}  // namespace tacet
