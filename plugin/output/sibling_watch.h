// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/open_box.h"

namespace tacet::plugin {

// Looks after the other processes of the job on this host: where a heart has stopped, it notes in its own box what
// /proc shows of that process. A process that was killed or stopped cannot write that itself, and once all of them are
// gone nobody else knows. Only the keeper calls this.
class SiblingWatch {
 public:
  void Open(const OpenBox& box, const char* box_path);
  // Looks about once a second at most, however often it is called.
  void Look(OpenBox& box);

 private:
  // A state that one look showed; stopped and uninterruptible count from the second look on, since both also pass by.
  struct Glimpse {
    int32_t pid = 0;
    box::SightState state{};
    int64_t wall_ns = 0;
  };

  void LookAt(OpenBox& box, int folder, const char* name, int64_t now_ns);
  void Note(OpenBox& box, const box::Header& sibling, box::SightState state);
  void Forget(int32_t pid);
  bool IsSecondLook(int32_t pid, box::SightState state, int64_t* since_wall_ns);

  char folder_[768] = {};  // empty: nothing to look at
  char own_name_[256] = {};
  int64_t next_ns_ = 0;
  Glimpse glimpses_[box::kSights];
  uint32_t next_glimpse_ = 0;
};

}  // namespace tacet::plugin
