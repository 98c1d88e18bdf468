// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/black_box_layout.h"

namespace tacet {

// Ticks of a box as time. Between and beyond its two clock pairs by their rate, or by the stated rate when they are too
// close to tell one.
class BoxClock {
 public:
  BoxClock() = default;
  explicit BoxClock(const box::Header& header);
  bool ok() const { return ns_per_tick_ > 0; }
  int64_t WallNs(uint64_t ticks) const;  // kNoBoxTime for 0 ticks and for nonsense
  int64_t DurationNs(uint64_t ticks) const;

 private:
  box::ClockPair latest_{};
  double ns_per_tick_ = 0;
};
inline constexpr int64_t kNoBoxTime = INT64_MIN;

struct BlackBoxComm {
  box::Comm comm;
  uint16_t slot = 0;
  uint64_t offset = 0;
};
struct BlackBoxGroup {
  box::Group group;
  uint64_t offset = 0;
};

// An operation from the table (in flight, as far as the box knows) or from the ring.
struct BlackBoxOp {
  box::Op op;
  uint64_t word = 0;  // of its slot; 0 for a ring record
  uint64_t offset = 0;
  bool in_table() const { return word != 0; }
};
struct BlackBoxProxy {
  box::ProxySlot proxy;
  uint64_t offset = 0;
};
struct BlackBoxPeer {
  box::Peer peer;
  uint64_t offset = 0;
};

enum class BoxTrouble : uint8_t {
  none,
  not_a_box,
  other_version,
  other_byte_order,
  not_ready,   // the writer died while it made the box
  bad_layout,  // tables outside the file, overlapping, or of another stride
};

struct BlackBox {
  BoxTrouble trouble = BoxTrouble::none;
  std::string reason;  // what exactly is wrong
  box::Header header{};
  BoxClock clock;
  std::vector<BlackBoxComm> comms;
  std::vector<BlackBoxGroup> groups;
  std::vector<BlackBoxOp> ops;  // ring and table together, by serial
  std::vector<BlackBoxProxy> proxies;
  std::vector<BlackBoxPeer> peers;
  uint64_t torn = 0;  // records and slots that were being written
  uint64_t bytes_understood = 0, bytes_empty = 0, bytes_torn = 0;
  bool cut = false;          // the file is shorter than its header says
  bool ring_lapped = false;  // older records were overwritten

  // These three look up, since a hostile box may hold as many communicators, groups and proxies as operations.
  const BlackBoxComm* CommOf(const box::Op& op) const;
  const box::Group* GroupOf(const box::Op& op) const;  // null when the slot went to a later group
  std::span<const uint32_t> ProxiesOf(uint32_t op_slot,
                                      uint32_t op_generation) const;  // indices, as they lie in the box
  // How the box knows that the operation ended, or that it did not.
  bool HasEnded(const BlackBoxOp& op) const;

  // After comms, groups and proxies are complete.
  void MakeIndex();

 private:
  std::vector<uint32_t> comms_by_id_, groups_by_number_, proxies_by_op_;  // sorted, of equal ones in the box's order
};

bool LooksLikeBlackBox(std::string_view prefix);

// Reads a whole box. Any byte may be wrong or changing under the reader: everything is copied out before it is checked.
BlackBox ParseBlackBox(std::string_view bytes);

}  // namespace tacet
