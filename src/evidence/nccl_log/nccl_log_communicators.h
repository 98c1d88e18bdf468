// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "evidence/nccl_log/nccl_log_parse.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

// One communicator as one process knows it. NCCL prints its address, which means nothing elsewhere, and its id, which
// all members share.
struct Communicator {
  uint32_t writer = 0;
  uint32_t speaker = 0;  // index into Fragment::speakers
  uint64_t address = 0;
  uint64_t id = 0;       // printed or computed; 0 unknown
  bool printed = false;  // a line prints the id
  uint64_t parent_id = 0;
  int32_t rank = -1, nranks = -1, device = -1;
  std::string bus_id;
  std::string name;  // commName, where a profiler plugin prints it
  GroupIndex group = GroupIndex::none;
  uint32_t issued[2] = {0, 0};      // collectives, sends and receives
  uint32_t api_issued[2] = {0, 0};  // the same as the CALL level counts them
  uint32_t start_event = 0xffffffffu;
  bool assumed = false;  // its place was concluded, see NcclLogImport::AssumePlaces
  bool placed = false;   // its place is told by the trace of kernels, see NcclLogImport::SettleKernelTraces
  uint32_t setup = 0xffffffffu;  // index into Fragment::nccl_setups
  // Of the collectives that the next choice is made for.
  uint32_t calls_since_choice = 0;
  bool chosen_since_call = false;
  DataType last_type = DataType::unknown;
  ReduceOp last_reduction = ReduceOp::unknown;
  bool init_seen = false, completed = false, completed_by_api = false, destroyed = false, aborted = false;
};

// The hash NCCL gives to a communicator split off another one, which the log does not print since 2.23. `minor` is the
// release 2.<minor>, -1 where unknown; `child_count` is -1 for 2.23, which does not count.
uint64_t HashOfSplit(int minor, uint64_t parent_id, int32_t child_count, int32_t color);

// "2.28.9+cuda13.0" -> 28; -1 for anything that is not 2.x.
int MinorRelease(std::string_view version);

class CommunicatorTable {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  // The communicator now at this address in this process, or kNone.
  uint32_t Find(uint32_t writer, uint64_t address) const;
  // The same; a new one where the process has not spoken of it yet.
  uint32_t FindOrAdd(uint32_t writer, uint64_t address);
  // The communicator that an init line begins or completes. Freed addresses are used again: another id makes it another
  // one.
  uint32_t Initialise(uint32_t writer, const NcclInit& init, int minor);

  Communicator& operator[](uint32_t index) { return all_[index]; }
  std::vector<Communicator>& all() { return all_; }

 private:
  struct Key {
    uint64_t address;
    uint32_t writer;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return (key.address ^ (uint64_t{key.writer} << 40)) * 0x9e3779b97f4a7c15u >> 16;
    }
  };
  uint64_t IdOf(uint32_t writer, const NcclInit& init, int minor);

  std::vector<Communicator> all_;
  std::unordered_map<Key, uint32_t, KeyHash> current_;
  std::unordered_map<uint64_t, uint32_t> splits_like_;  // for 2.23, whose hash repeats: how often this process made it
};

}  // namespace tacet
