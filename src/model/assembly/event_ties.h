// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/incident.h"

namespace tacet {

// Kernel and scheduler lines know a pid or the address of a GPU, not a rank. Gives them the process they are about: by
// pid, else by the bus id that NCCL prints for a rank, on the host that wrote the line. What the kernel said long
// before the job began, or days after its end, is set aside, with a diagnostic.
void TieEventsToProcesses(Incident& incident);

// The host whose kernel wrote a log that does not name it: the one in its path, or the one of all other files of that
// folder; empty where neither tells.
std::string HostOfKernelLog(const Incident& incident, FileId file);

// "0000:4b:00.0", "0000:4b:00" and "4b:00.0" as NCCL prints a bus id, 0x4b000; -1 where it is no such address.
int64_t BusIdOf(std::string_view pci_address);

}  // namespace tacet
