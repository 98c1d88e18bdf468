// SPDX-License-Identifier: Apache-2.0
#include "evidence/black_box/black_box_parse.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

namespace tacet {
namespace {

using namespace box;

std::string_view MagicText() { return {kMagic, sizeof kMagic}; }

template <typename T>
T CopyAt(std::string_view bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool IsPowerOfTwo(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Tables follow each other in a fixed order without overlap, so that no byte is counted twice.
bool CheckTables(const Header& header, std::string* reason) {
  struct Expected {
    const Table* table;
    uint32_t stride;
    const char* name;
  };
  const Expected tables[] = {
      {&header.comms, sizeof(Comm), "communicators"}, {&header.groups, sizeof(Group), "groups"},
      {&header.ops, sizeof(OpSlot), "operations"},    {&header.proxies, sizeof(ProxySlot), "proxies"},
      {&header.peers, sizeof(Peer), "peers"},         {&header.ring, sizeof(Record), "ring"}};
  uint64_t at = sizeof(Header);
  for (const auto& [table, stride, name] : tables) {
    const bool fits = table->offset >= at && table->offset % 8 == 0 && table->stride == stride &&
                      IsPowerOfTwo(table->count) && table->offset <= header.file_bytes &&
                      uint64_t{table->count} * stride <= header.file_bytes - table->offset;
    if (!fits) {
      *reason = std::string("the table of ") + name + " is outside the box";
      return false;
    }
    at = table->offset + uint64_t{table->count} * stride;
  }
  // An operation names its communicator with 16 bits.
  if (header.comms.count > uint32_t{kNoComm} + 1) {
    *reason = "the table of communicators is larger than any operation can name";
    return false;
  }
  return true;
}

BoxTrouble CheckHeader(const Header& header, std::string* reason) {
  if (header.version != kVersion) {
    *reason = "the box has layout version " + std::to_string(header.version) + ", this reader knows version " +
              std::to_string(kVersion);
    return BoxTrouble::other_version;
  }
  if (header.byte_order != kByteOrder) {
    *reason = "the box was written with a different byte order";
    return BoxTrouble::other_byte_order;
  }
  if (header.ready != 1) {
    *reason = "the process ended while it created the box";
    return BoxTrouble::not_ready;
  }
  if (header.header_bytes != sizeof(Header)) {
    *reason = "the header has " + std::to_string(header.header_bytes) + " bytes";
    return BoxTrouble::bad_layout;
  }
  return CheckTables(header, reason) ? BoxTrouble::none : BoxTrouble::bad_layout;
}

// Codes a hostile box may hold become "unknown".
void Tame(Op& op) {
  if (op.kind > Kind::wait_signal) op.kind = Kind::unknown;
  if (op.type > Type::float8_e5m2) op.type = Type::unknown;
  if (op.algorithm > Algorithm::symmetric) op.algorithm = Algorithm::unknown;
  if (op.protocol > Protocol::simple) op.protocol = Protocol::unknown;
}

// Calls visit(entry, offset) for each entry that lies in the file as it is. The visitor says how many of its bytes are
// used (understood), else whether they are empty or torn.
enum class Entry { used, empty, torn };
template <typename T, typename Visit>
void ReadTable(std::string_view bytes, const Table& table, BlackBox& box, Visit visit) {
  for (uint32_t i = 0; i < table.count; ++i) {
    const uint64_t offset = table.offset + uint64_t{i} * sizeof(T);
    if (offset + sizeof(T) > bytes.size()) return;
    T entry = CopyAt<T>(bytes, offset);
    switch (visit(entry, i, offset)) {
      case Entry::used: box.bytes_understood += sizeof(T); break;
      case Entry::empty: box.bytes_empty += sizeof(T); break;
      case Entry::torn: box.bytes_torn += sizeof(T), ++box.torn; break;
    }
  }
}

void ReadComms(std::string_view bytes, BlackBox& box) {
  ReadTable<Comm>(bytes, box.header.comms, box, [&](Comm& comm, uint32_t slot, uint64_t offset) {
    if ((comm.word & kCommUsed) == 0) return comm.word == 0 ? Entry::empty : Entry::torn;
    comm.name[sizeof comm.name - 1] = 0;
    box.comms.push_back({comm, static_cast<uint16_t>(slot), offset});
    return Entry::used;
  });
}

void ReadGroups(std::string_view bytes, BlackBox& box) {
  ReadTable<Group>(bytes, box.header.groups, box, [&](Group& group, uint32_t slot, uint64_t offset) {
    if (group.word == 0) return Entry::empty;
    if ((group.word & 0xff) == static_cast<uint64_t>(GroupState::none)) return Entry::torn;
    if ((group.word >> 8 & (box.header.groups.count - 1)) != slot) return Entry::torn;
    box.groups.push_back({group, offset});
    return Entry::used;
  });
}

void ReadOpTable(std::string_view bytes, BlackBox& box) {
  const uint64_t count = box.header.ops.count;
  ReadTable<OpSlot>(bytes, box.header.ops, box, [&](OpSlot& slot, uint32_t index, uint64_t offset) {
    if ((slot.word & kWordBusy) != 0) return Entry::torn;
    if ((slot.word & kWordLive) == 0) return Entry::empty;
    // A slot that was taken over while the file was copied shows parts of two operations.
    const bool one =
        slot.op.serial % count == index && static_cast<uint32_t>(slot.op.serial / count) == WordGeneration(slot.word);
    if (!one) return Entry::torn;
    Tame(slot.op);
    slot.op.channels_started = static_cast<uint8_t>(WordStarted(slot.word));
    slot.op.channels_stopped = static_cast<uint8_t>(WordStopped(slot.word));
    box.ops.push_back({slot.op, slot.word, offset});
    return Entry::used;
  });
}

void ReadProxies(std::string_view bytes, BlackBox& box) {
  ReadTable<ProxySlot>(bytes, box.header.proxies, box, [&](ProxySlot& proxy, uint32_t, uint64_t offset) {
    if ((proxy.word & kWordBusy) != 0) return Entry::torn;
    if ((proxy.word & kWordLive) == 0) return Entry::empty;
    box.proxies.push_back({proxy, offset});
    return Entry::used;
  });
}

void ReadPeers(std::string_view bytes, BlackBox& box) {
  ReadTable<Peer>(bytes, box.header.peers, box, [&](Peer& peer, uint32_t, uint64_t offset) {
    if (peer.key == 0) return Entry::empty;
    box.peers.push_back({peer, offset});
    return Entry::used;
  });
}

void ReadRing(std::string_view bytes, BlackBox& box) {
  const uint64_t count = box.header.ring.count;
  ReadTable<Record>(bytes, box.header.ring, box, [&](Record& record, uint32_t place, uint64_t offset) {
    if (record.seq == 0) return Entry::empty;
    const bool whole = record.seq % 2 == 0 && (record.seq / 2 - 1) % count == place &&
                       CheckOf(record.op, record.seq) == record.op.check;
    if (!whole) return Entry::torn;
    if (record.seq / 2 > count) box.ring_lapped = true;
    Tame(record.op);
    box.ops.push_back({record.op, 0, offset});
    return Entry::used;
  });
}

}  // namespace

BoxClock::BoxClock(const Header& header) : latest_(header.latest[header.clock_updates % 2]) {
  const double ticks = static_cast<double>(latest_.ticks) - static_cast<double>(header.first.ticks);
  const double ns = static_cast<double>(latest_.monotonic_ns) - static_cast<double>(header.first.monotonic_ns);
  if (ns > 1e8 && ticks > 0)
    ns_per_tick_ = ns / ticks;
  else if (header.tick_hz != 0)
    ns_per_tick_ = 1e9 / static_cast<double>(header.tick_hz);
  if (!(ns_per_tick_ > 1e-4 && ns_per_tick_ < 1e6)) ns_per_tick_ = 0;
}

int64_t BoxClock::DurationNs(uint64_t ticks) const {
  const double ns = static_cast<double>(ticks) * ns_per_tick_;
  return ns < 9e18 ? static_cast<int64_t>(ns) : std::numeric_limits<int64_t>::max();
}

int64_t BoxClock::WallNs(uint64_t ticks) const {
  if (!ok() || ticks == 0) return kNoBoxTime;
  // The difference as an integer first: a wall time does not fit a double to the nanosecond.
  const bool later = ticks >= latest_.ticks;
  const int64_t apart = DurationNs(later ? ticks - latest_.ticks : latest_.ticks - ticks);
  int64_t wall = 0;
  const bool overflow = later ? __builtin_add_overflow(latest_.wall_ns, apart, &wall)
                              : __builtin_sub_overflow(latest_.wall_ns, apart, &wall);
  return overflow || wall < 0 ? kNoBoxTime : wall;
}

namespace {

uint32_t NumberOf(const BlackBoxGroup& entry) { return static_cast<uint32_t>(entry.group.word >> 8); }

auto CommKey(uint64_t comm_id, uint16_t slot) { return std::pair(comm_id, slot); }

auto ProxyKey(const ProxySlot& proxy) { return std::pair(proxy.op_slot, proxy.op_generation); }

template <typename Entry, typename Key>
std::vector<uint32_t> SortedBy(const std::vector<Entry>& entries, Key key) {
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return key(entries[a]) < key(entries[b]); });
  return order;
}

}  // namespace

void BlackBox::MakeIndex() {
  comms_by_id_ = SortedBy(comms, [](const BlackBoxComm& one) { return CommKey(one.comm.comm_id, one.slot); });
  groups_by_number_ = SortedBy(groups, NumberOf);
  proxies_by_op_ = SortedBy(proxies, [](const BlackBoxProxy& one) { return ProxyKey(one.proxy); });
}

// Of several slots of one communicator the operation's own, else the last.
const BlackBoxComm* BlackBox::CommOf(const Op& op) const {
  const auto before = [&](uint32_t index, const auto& key) {
    return CommKey(comms[index].comm.comm_id, comms[index].slot) < key;
  };
  const auto own = std::lower_bound(comms_by_id_.begin(), comms_by_id_.end(), CommKey(op.comm_id, op.comm), before);
  if (own != comms_by_id_.end() && comms[*own].comm.comm_id == op.comm_id && comms[*own].slot == op.comm)
    return &comms[*own];
  const auto end = std::upper_bound(own, comms_by_id_.end(), op.comm_id,
                                    [&](uint64_t id, uint32_t index) { return id < comms[index].comm.comm_id; });
  if (end == comms_by_id_.begin()) return nullptr;
  const BlackBoxComm& last = comms[*std::prev(end)];
  return last.comm.comm_id == op.comm_id ? &last : nullptr;
}

const Group* BlackBox::GroupOf(const Op& op) const {
  if (op.group == 0) return nullptr;
  const auto found =
      std::lower_bound(groups_by_number_.begin(), groups_by_number_.end(), op.group,
                       [&](uint32_t index, uint32_t number) { return NumberOf(groups[index]) < number; });
  return found != groups_by_number_.end() && NumberOf(groups[*found]) == op.group ? &groups[*found].group : nullptr;
}

std::span<const uint32_t> BlackBox::ProxiesOf(uint32_t op_slot, uint32_t op_generation) const {
  const std::pair wanted(op_slot, op_generation);
  const auto begin =
      std::lower_bound(proxies_by_op_.begin(), proxies_by_op_.end(), wanted,
                       [&](uint32_t index, const auto& key) { return ProxyKey(proxies[index].proxy) < key; });
  const auto end = std::upper_bound(begin, proxies_by_op_.end(), wanted, [&](const auto& key, uint32_t index) {
    return key < ProxyKey(proxies[index].proxy);
  });
  return {proxies_by_op_.data() + (begin - proxies_by_op_.begin()), static_cast<size_t>(end - begin)};
}

bool BlackBox::HasEnded(const BlackBoxOp& entry) const {
  const Op& op = entry.op;
  if ((op.flags & kOpCaptured) != 0) return false;
  if (!entry.in_table()) return (op.flags & kOpEndUnknown) == 0;
  if (WordStarted(entry.word) != WordStopped(entry.word) || WordProxies(entry.word) != 0) return false;
  const bool quiet = WordStopped(entry.word) != 0 && (entry.word & kWordEnqueued) != 0 &&
                     (op.channels == 0 || (op.flags & kOpChannelsAtMost) != 0);
  const BlackBoxComm* comm = CommOf(op);
  return quiet || (comm != nullptr && comm->comm.last_finished_serial > op.serial + 1);
}

bool LooksLikeBlackBox(std::string_view prefix) { return prefix.starts_with(MagicText()); }

BlackBox ParseBlackBox(std::string_view bytes) {
  BlackBox box;
  // A process makes the file first, and writes its header when the file has its size.
  if (!bytes.empty() && bytes.substr(0, MagicText().size()).find_first_not_of('\0') == std::string_view::npos) {
    box.trouble = BoxTrouble::not_ready;
    box.reason = "nothing has been written into it yet";
    return box;
  }
  if (bytes.size() < sizeof(Header) || !LooksLikeBlackBox(bytes)) {
    box.trouble = BoxTrouble::not_a_box;
    box.reason = LooksLikeBlackBox(bytes) ? "the file ends inside the header" : "this is not a black box";
    return box;
  }
  box.header = CopyAt<Header>(bytes, 0);
  box.trouble = CheckHeader(box.header, &box.reason);
  if (box.trouble != BoxTrouble::none) return box;
  box.cut = bytes.size() < box.header.file_bytes;
  box.clock = BoxClock(box.header);
  box.bytes_understood = sizeof(Header);
  ReadComms(bytes, box);
  ReadGroups(bytes, box);
  // The table before the ring: an operation that ends in between is then seen twice, not lost.
  ReadOpTable(bytes, box);
  ReadProxies(bytes, box);
  ReadPeers(bytes, box);
  ReadRing(bytes, box);
  box.MakeIndex();
  std::stable_sort(box.ops.begin(), box.ops.end(), [](const BlackBoxOp& a, const BlackBoxOp& b) {
    return a.op.serial != b.op.serial ? a.op.serial < b.op.serial : !a.in_table() && b.in_table();
  });
  // The ring's record of an operation is the later one.
  const auto same = [](const BlackBoxOp& a, const BlackBoxOp& b) { return a.op.serial == b.op.serial; };
  box.ops.erase(std::unique(box.ops.begin(), box.ops.end(), same), box.ops.end());
  return box;
}

}  // namespace tacet
