// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "live/agent/box_file_reader.h"
#include "live/agent/box_finder.h"
#include "live/agent/box_state.h"
#include "live/agent/process_sight.h"

namespace tacet {

// An operation that ended since the last look, in the agent's terms.
struct FinishedOperation {
  const BoxState* box = nullptr;    // whose it was
  const CommState* comm = nullptr;  // null when its communicator is no longer known
  const box::Op* op = nullptr;
  OpKind kind = OpKind::unknown;
  int64_t bytes = -1;
  int64_t duration_ns = -1;    // on the GPU where told, else as the host saw it; -1 nobody saw it
  int64_t in_flight_ns = -1;   // from issue to end
  int64_t issue_wall_ns = -1;  // when the host called NCCL, -1 unknown
  int64_t finish_wall_ns = -1;
  std::array<int64_t, box::kCauses> wait_ns{};  // of its network steps, by cause, summed
  double bus_bytes_per_second = 0;              // as nccl-tests define it; 0 where it has none
};

struct BoxWatchOptions {
  std::string root = "/dev/shm/tacet";
  std::string proc = "/proc";
  size_t most_boxes = 1024;      // more are counted and left out; users take turns
  size_t most_operations = 256;  // in flight, told a box
  // What a look reads of the boxes of one user; what is beyond is told and left out, oldest first.
  uint64_t most_bytes_of_user = uint64_t{128} << 20;
};

// Finds the black boxes below a folder and follows them. One thread uses it.
class BoxWatch {
 public:
  explicit BoxWatch(BoxWatchOptions options);
  ~BoxWatch();

  // Looks for new and vanished boxes, then at each. Calls `finished` for every operation that ended since.
  HostState Look(int64_t wall_ns, const std::function<void(const FinishedOperation&)>& finished);
  // What was found when it last looked for boxes; the boxes themselves are in the state.
  const BoxListing& listing() const { return listing_; }

  // A valid small copy of one box; empty when no such box is watched. May be called from another thread if the caller
  // holds off Look meanwhile.
  std::string CopyBox(const std::string& name, uint32_t newest) const;
  int64_t OwnerOf(const std::string& name) const;  // -1: no such box is watched
  // Removes a box's file, if it is still the one that was watched.
  bool Remove(const std::string& name);
  // Marks a box as evidence, for this agent and later ones: a file "NAME.keep" beside it.
  void MarkEvidence(const std::string& name) const;
  bool IsEvidence(const std::string& name) const;

 private:
  struct Watched;
  void Find();
  void Open(const FoundBox& found);
  BoxState LookAt(const std::string& name, Watched& watched, int64_t wall_ns, uint64_t* bytes_left,
                  const std::function<void(const FinishedOperation&)>& finished);

  BoxWatchOptions options_;
  ProcessLooker processes_;
  std::map<std::string, std::unique_ptr<Watched>> boxes_;  // by name
  BoxListing listing_;
  int64_t find_again_ns_ = 0;
};

// What of a parsed copy makes up the state; the sight of the process is added by the watch.
BoxState DescribeBox(const std::string& copy, const BlackBox& box, int64_t wall_ns, size_t most_operations);
FinishedOperation DescribeFinished(const BlackBox& box, const BoxState& state, const box::Op& op);

}  // namespace tacet
