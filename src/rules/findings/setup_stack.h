// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// The job is said to hang, and all that is shown are stacks of processes that wait for others to join a communicator.
std::optional<Finding> FindWaitInSetup(const Case& facts);

// Open MPI's own note: a process or daemon of mpirun could not connect to another one.
bool DaemonCannotConnect(const Incident& incident);

}  // namespace tacet
