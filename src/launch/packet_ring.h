// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

namespace tacet {

// tcpdump beside the job: the first 128 bytes of each packet of all interfaces, in four files of 50 MB that overwrite
// each other. Needs tcpdump and the right to use it.
class PacketRing {
 public:
  ~PacketRing() { Stop(); }
  // A sentence for the user: what it costs, or why there is none.
  std::string Start(const std::string& run_folder);
  void Stop();

 private:
  pid_t pid_ = -1;
};

}  // namespace tacet
