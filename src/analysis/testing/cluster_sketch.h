// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/incident.h"

namespace tacet {

// A healthy cluster as NCCL's set-up logs of all ranks show it: NVSwitch, one NIC below a switch with each GPU, rings
// on rails, trees not drawn. Tests change what they want to be wrong.
struct ClusterPlan {
  int32_t nodes = 2, gpus = 4;
};
Incident SketchCluster(const ClusterPlan& plan = {});
// Such a sketch once more: incidents themselves are not copied.
Incident CopyOf(const Incident& sketch);

// The index of a way in Incident::transports, a new one where it is new.
uint32_t WayOf(Incident& incident, const std::string& via);
// What `from` prints of its connection to `to` on this channel; nullptr where there is none.
ChannelUse* UseOf(Incident& incident, int32_t from, int32_t to, ChannelUse::Direction direction);
// An NCCL_* variable that all ranks print.
void SetVariable(Incident& incident, const std::string& name, const std::string& value);

}  // namespace tacet
