// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// The kernel names a process, every rank's pid is known, and it is none of them.
bool IsOfForeignProcess(const Case& facts, const Event& event);

// What the kernel reports of a device, without a rank, at the place and time at which a rank reports an error of CUDA:
// the reason of that error. Null where there is none, or where several hosts may be meant.
const Event* KernelReasonOf(const Case& facts, const Event& error);
// When the kernel reported it, seen from the error: " at that time", or that this cannot be told.
std::string WhenWords(const Case& facts, const Event& fault, const Event& error);
// The host of both is told, and the same.
bool IsSameHost(const Case& facts, const Event& reason, const Event& error);

// The one rank that all others wait for, where nothing tells of it why, and where it may run on the host whose kernel
// speaks: what the kernel reports is most likely of that rank.
Rank AwaitedOn(const Case& facts, const Event& told);

// Errors of PCIe links that the kernel reports beside a fault of a GPU, within the same minute.
std::vector<const Event*> PcieErrorsBeside(const Case& facts, const Event& fault);

// Faults that a job survives and that still ask for something: rows of memory to be remapped at the next reset.
void NoteMildXid(const Case& facts, RuleAnswer& answer);

}  // namespace tacet
