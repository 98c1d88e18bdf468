// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "evidence/nccl_log/nccl_log_communicators.h"
#include "evidence/nccl_log/nccl_log_line.h"
#include "evidence/nccl_log/nccl_log_parse.h"
#include "model/fragment.h"

namespace tacet {

// Gathers what lines say of channels: rings, trees, connections, network devices. Few of these lines name their
// communicator; it is told by the thread that set it up, and by the rank that the line names as its own.
class NcclLogChannels {
 public:
  NcclLogChannels(CommunicatorTable& comms, Fragment& out) : comms_(comms), out_(out) {}

  // An init line was read. Releases before 2.18 print only the one that completes it, below all that belongs to it.
  void TakeInit(const NcclLogLine& line, uint32_t comm, bool complete, bool told_start);
  // `current` is the communicator that the process's last call was on.
  void TakeConnection(const NcclLogLine& line, const NcclConnection& connection, const ChannelSet& channels,
                      uint32_t current);
  // HashViaClass, remembered.
  uint64_t ClassOf(std::string_view via) { return WayOf(via).kind; }
  // Rings, trees, orders of channels, what is connected. False where the line is none of these.
  bool TakePlace(const NcclLogLine& line, uint32_t current);
  // "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>", and what later lines add to it.
  void TakeDevices(const NcclLogLine& line);
  bool TakeNetRemark(const NcclLogLine& line);
  // Gives the records their speakers and groups. `speakers` by writer.
  void Finish(const std::vector<uint32_t>& speakers);

 private:
  RankChannels& RecordOf(const NcclLogLine& line, int32_t own_rank, int32_t largest, uint64_t address,
                         uint32_t current);
  RankChannels& RecordOfConnecting(const NcclLogLine& line, int32_t own_rank, int32_t largest, uint64_t address,
                                   uint32_t current, bool connected);
  RankChannels& RecordOfComm(uint32_t comm, const NcclLogLine& line);
  RankChannels& PendingRecord(const NcclLogLine& line);
  bool Fits(uint32_t comm, uint32_t writer, int32_t own_rank, int32_t largest) const;
  uint32_t AnyThatFits(uint32_t writer, int32_t own_rank, int32_t largest) const;
  // What stands behind "via", read once: a process has few of them and uses each thousands of times.
  struct KnownWay {
    std::string_view via;  // a view into the file
    uint64_t address = 0;  // of the communicator, where RCCL names it there
    uint64_t kind = 0;     // HashViaClass
    uint32_t transport = 0;
  };
  const KnownWay& WayOf(std::string_view via);
  uint32_t TransportOf(std::string_view via);
  NetDevices& DevicesOf(uint32_t writer);

  static uint64_t ThreadKey(const NcclLogLine& line) {
    return (uint64_t{line.writer} << 40) ^ static_cast<uint64_t>(line.tid);
  }

  CommunicatorTable& comms_;
  Fragment& out_;
  std::vector<RankChannels> records_;
  std::vector<uint32_t> comm_of_record_, writer_of_record_;
  std::unordered_map<uint32_t, uint32_t> record_of_comm_;
  std::unordered_map<uint64_t, uint32_t> pending_;         // thread -> record whose init line is still to come
  std::unordered_map<uint64_t, uint32_t> comm_of_thread_;  // whom this thread set up last
  // The rings or trees that a thread connects now. A call on another communicator, or a new one, ends it.
  struct Connecting {
    uint32_t comm = CommunicatorTable::kNone, current = CommunicatorTable::kNone;
    bool connected = false;  // "Connected all ..." was read
  };
  std::unordered_map<uint64_t, Connecting> connecting_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> comms_of_writer_;
  std::unordered_map<uint32_t, bool> tells_start_;
  std::unordered_map<std::string_view, uint32_t> transports_;  // views into the file
  std::unordered_map<uint32_t, uint32_t> devices_of_writer_;
  static constexpr size_t kKnownWays = 64;
  KnownWay known_ways_[kKnownWays];
  uint64_t last_thread_ = 0;
  uint32_t last_record_ = CommunicatorTable::kNone;  // of last_thread_; kNone: look it up
};

}  // namespace tacet
