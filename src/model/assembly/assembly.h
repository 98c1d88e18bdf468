// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/incident.h"

namespace tacet {

// Joins the fragments of all files into jobs: who is who (ranks, pids, hosts, communicators), what belongs to another run,
// what was assumed. Almost always one job; several when one folder holds the files of several runs.
std::vector<Incident> Assemble(std::vector<Fragment> fragments, const Patience& patience = {});

}  // namespace tacet
