// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

// Memory that all ranks of a test job share: the wires between them. One mailbox a sender, receiver, communicator and
// channel; a message is a few numbers.
namespace tacet::fake {

inline constexpr int kMaxComms = 4, kMaxChannels = 4, kMailSlots = 8, kMessageWords = 4;

struct Mailbox {
  std::atomic<uint64_t> credits;  // messages the receiver is ready for
  std::atomic<uint64_t> sent;     // messages that arrived
  std::atomic<uint64_t> taken;    // messages the receiver has taken out
  uint64_t words[kMailSlots][kMessageWords];
};

class SharedArena {
 public:
  // To be made before the ranks are forked.
  static SharedArena Make(int ranks);
  // For ranks that a launcher starts one by one: all of them map the same file, whoever comes first makes it.
  static SharedArena Join(const std::string& file, int ranks);
  int ranks() const { return ranks_; }
  Mailbox& Box(int comm, int from, int to, int channel) {
    return boxes_[((static_cast<int64_t>(comm) * ranks_ + from) * ranks_ + to) * kMaxChannels + channel];
  }
  // Steps each rank has finished; the parent and faults look at it.
  std::atomic<uint64_t>& StepsOf(int rank) { return steps_[rank]; }
  void Barrier();

 private:
  struct Head {
    std::atomic<int> waiting, generation;
  };
  static SharedArena LayOut(void* memory, int ranks);
  int ranks_ = 0;
  Head* head_ = nullptr;
  std::atomic<uint64_t>* steps_ = nullptr;
  Mailbox* boxes_ = nullptr;
};

}  // namespace tacet::fake
