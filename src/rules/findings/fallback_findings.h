// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/unexplained/told_finding.h"

namespace tacet {

// A slower transport than the hosts have, told by these events.
Finding FallbackFinding(const ToldEvents& told);

// A network plugin of NCCL other than the one for libfabric, by its own name: "FasTrak"; empty where it is that one, or
// none is named.
std::string OtherPlugin(const ToldEvents& told);
Finding OtherPluginFinding(const std::string& plugin, const ToldEvents& told, const ToldEvents& socket);

// One host in the guise of several: which network its hosts have says nothing. `splitters` set NCCL_HOSTID.
Finding SplitHostFinding(const Case& facts, const ToldEvents& socket, const std::vector<const Event*>& splitters);

// What a plugin reports before it gives up and NCCL takes another network (model/assembly/survived_setup).
bool IsSurvivedSetup(const Event& event);
void TellFailedSetup(const ToldEvents& setup, Finding& finding);

// Open MPI says so itself, and goes on over another transport.
Finding MpiFallbackFinding(const ToldEvents& told);

// No adapter is named, so none is there, and the program prints on behind the note: nothing is lost. MPI may carry
// none of its data at all.
bool IsNoteOfNoAdapter(const Case& facts, const ToldEvents& told);

}  // namespace tacet
