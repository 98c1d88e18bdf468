// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/incident.h"
#include "rules/finding.h"

namespace tacet {

// Whose GPUs the job runs on, by the words of its messages: of this one, else of any other. A job has GPUs of one kind.
GpuMaker MakerOfGpus(const Incident& incident, const Event& event);

// Steps on AMD's GPUs, where those of CUDA are of no use: a kernel that reads or writes where it must not, ...
std::vector<std::string> AmdKernelSteps();
// ... a device that the driver had to reset, ...
std::vector<std::string> AmdDeviceSteps();
// ... and on TPUs.
std::vector<std::string> IntelSteps();
std::vector<std::string> TpuSteps();
// "GPU", or "TPU" where the messages are of one.
std::string DeviceWord(GpuMaker maker);
// What is true of faults of TPUs, ...
void SayOfTpu(Finding& finding);
// ... and of AMD's GPUs in general.
void SayOfAmd(Finding& finding);
// ... GPUs that cannot reach each other's memory.
std::vector<std::string> AmdPeerSteps();

// What to do where the links between the GPUs of a node failed.
std::vector<std::string> NvlinkSteps(const std::string& node);

}  // namespace tacet
