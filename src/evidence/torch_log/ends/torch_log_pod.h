// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What Kubernetes and its operators tell of the end of a pod's process.
LineUse ReadPodEnd(const LogLine& line, RecordList& out);

// What `kubectl describe pod` tells above and below the line that says how a container ended: the pod, its node, the
// limit of its memory.
class PodDescriptionReader {
 public:
  LineUse Read(const LogLine& line, RecordList& out);

 private:
  std::string pod_, node_;
  TorchLogRecord* killed_ = nullptr;
  bool in_limits_ = false;
};

}  // namespace tacet
