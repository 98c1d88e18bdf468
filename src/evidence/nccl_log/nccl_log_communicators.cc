// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_communicators.h"

#include <cstdio>
#include <cstring>

#include "base/text_scan.h"

namespace tacet {
namespace {

// NCCL's hash of a 128-byte unique id, of which only the text at the front is not zero.
uint64_t HashOfUniqueId(const char* text) {
  constexpr int kUniqueIdBytes = 128;
  const size_t length = std::strlen(text);
  uint64_t hash = 5381;
  for (int i = 0; i < kUniqueIdBytes; ++i)
    hash = (hash * 33) ^ (static_cast<size_t>(i) < length ? static_cast<unsigned char>(text[i]) : 0u);
  return hash;
}

// NCCL's running hash since 2.26: two accumulators that eat one value at a time.
class RunningHash {
 public:
  template <typename T>
  void Eat(T value) {
    a_ ^= sizeof value;
    a_ += b_;
    b_ ^= a_;
    a_ ^= a_ >> 31;
    a_ *= 0x9de62bbc8cef3ce3u;
    b_ ^= b_ >> 32;
    b_ *= 0x485cd6311b599e79u;
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    a_ += word;
  }
  uint64_t Digest() const {
    uint64_t hash = a_;
    hash ^= hash >> 31;
    hash *= 0xbac3bd562846de6bu;
    hash += b_;
    hash ^= hash >> 32;
    hash *= 0x995a187a14e7b445u;
    return hash;
  }

 private:
  uint64_t a_ = 1, b_ = 1;
};

}  // namespace

uint64_t HashOfSplit(int minor, uint64_t parent_id, int32_t child_count, int32_t color) {
  char text[128];
  const auto parent = static_cast<unsigned long long>(parent_id);
  if (child_count < 0) {
    std::snprintf(text, sizeof text, "%016llx-%d", parent, color);
    return HashOfUniqueId(text);
  }
  if (minor == 24 || minor == 25) {
    std::snprintf(text, sizeof text, "%016llx-%d-%d", parent, child_count, color);
    return HashOfUniqueId(text);
  }
  RunningHash hash;
  hash.Eat(parent_id);
  hash.Eat(child_count);
  hash.Eat(color);
  return hash.Digest();
}

int MinorRelease(std::string_view version) {
  int minor = -1;
  return TakeLiteral(version, "2.") && TakeNumber(version, &minor) ? minor : -1;
}

uint32_t CommunicatorTable::Find(uint32_t writer, uint64_t address) const {
  const auto found = current_.find({address, writer});
  return found == current_.end() ? kNone : found->second;
}

uint32_t CommunicatorTable::FindOrAdd(uint32_t writer, uint64_t address) {
  const auto [place, is_new] = current_.try_emplace({address, writer}, static_cast<uint32_t>(all_.size()));
  if (is_new) {
    Communicator comm;
    comm.writer = writer;
    comm.address = address;
    all_.push_back(std::move(comm));
  }
  return place->second;
}

uint64_t CommunicatorTable::IdOf(uint32_t writer, const NcclInit& init, int minor) {
  if (init.comm_id != 0 || !init.is_split) return init.comm_id;
  const uint32_t parent = Find(writer, init.parent);
  if (parent == kNone || all_[parent].id == 0) return 0;
  uint64_t id = HashOfSplit(minor, all_[parent].id, init.child_count, init.color);
  if (init.child_count >= 0) return id;
  // Every member makes these splits in the same order, so that the n-th of them is the same for all.
  const uint32_t before = splits_like_[id ^ (uint64_t{writer} << 32)]++;
  return before == 0 ? id : id ^ (before * 0x9e3779b97f4a7c15u);
}

uint32_t CommunicatorTable::Initialise(uint32_t writer, const NcclInit& init, int minor) {
  uint32_t index = FindOrAdd(writer, init.comm);
  const bool fresh = !all_[index].init_seen;
  // The COMPLETE line of a split repeats START's fields; its id was computed then.
  const bool completes = init.complete && !fresh && !all_[index].completed && all_[index].rank == init.rank &&
                         all_[index].nranks == init.nranks && (init.comm_id == 0 || init.comm_id == all_[index].id);
  if (completes) return index;
  const uint64_t id = IdOf(writer, init, minor);
  const Communicator& known = all_[index];
  const bool same = fresh || (known.id == id && known.rank == init.rank && known.nranks == init.nranks && id != 0);
  if (!same) {
    current_.erase({init.comm, writer});
    index = FindOrAdd(writer, init.comm);
  }
  Communicator& comm = all_[index];
  comm.init_seen = true;
  comm.id = id;
  comm.printed = init.comm_id != 0;
  comm.rank = init.rank;
  comm.nranks = init.nranks;
  comm.device = init.device;
  comm.bus_id = init.bus_id;
  if (init.is_split) {
    const uint32_t parent = Find(writer, init.parent);
    if (parent != kNone) comm.parent_id = all_[parent].id;
  }
  return index;
}

}  // namespace tacet
