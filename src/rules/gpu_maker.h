// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/incident.h"

namespace tacet {

// Whose GPUs the job runs on, by the words of its messages: of this one, else of any other. A job has GPUs of one kind.
GpuMaker MakerOfGpus(const Incident& incident, const Event& event);

// Steps on AMD's GPUs, where those of CUDA are of no use: a kernel that reads or writes where it must not, ...
std::vector<std::string> AmdKernelSteps();
// ... a device that the driver had to reset, ...
std::vector<std::string> AmdDeviceSteps();
// ... GPUs that cannot reach each other's memory.
std::vector<std::string> AmdPeerSteps();

}  // namespace tacet
