// SPDX-License-Identifier: Apache-2.0
#include "live/agent/box_file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tacet {
namespace {

using namespace box;

// A hostile header may name tables of any size inside a sparse file. These are the largest that the plugin makes, and
// for communicators and groups four times as many.
constexpr uint32_t kMostComms = 4096, kMostGroups = 16384, kMostSlots = 65536;
constexpr uint64_t kMostRingTableBytes = uint64_t{4} << 30;
constexpr uint64_t kTmpfsMagic = 0x01021994;

template <typename T>
std::vector<T> EntriesOf(const std::string& bytes) {
  std::vector<T> entries(bytes.size() / sizeof(T));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(T));
  return entries;
}

uint32_t PowerOfTwoFrom(size_t least) {
  uint32_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// The smallest power of two by which all keys fall into places of their own, at most `most`.
uint32_t PlacesFor(const std::vector<uint64_t>& keys, uint32_t most) {
  for (uint32_t places = PowerOfTwoFrom(keys.size()); places < most; places *= 2) {
    std::unordered_set<uint64_t> taken;
    const bool apart =
        std::all_of(keys.begin(), keys.end(), [&](uint64_t key) { return taken.insert(key & (places - 1)).second; });
    if (apart) return places;
  }
  return most;
}

bool IsLive(uint64_t word) { return (word & (kWordLive | kWordBusy)) == kWordLive; }

// Slots of a table of `count` places; those left empty stay zero.
template <typename T>
struct SmallTable {
  std::vector<T> slots;
  explicit SmallTable(uint32_t count) : slots(count) {}
  void AppendTo(std::string& out, Table& table) const {
    table = {out.size(), static_cast<uint32_t>(slots.size()), sizeof(T)};
    out.append(reinterpret_cast<const char*>(slots.data()), slots.size() * sizeof(T));
  }
};

// An operation's place is its serial modulo the table's size, its generation the quotient; a smaller table needs both
// anew, and the network operations that point at it, too.
struct OpsInFlight {
  std::vector<OpSlot> ops;
  std::vector<ProxySlot> proxies;

  OpsInFlight(const std::string& op_bytes, const std::string& proxy_bytes) {
    for (const OpSlot& slot : EntriesOf<OpSlot>(op_bytes))
      if (IsLive(slot.word)) ops.push_back(slot);
    for (const ProxySlot& slot : EntriesOf<ProxySlot>(proxy_bytes))
      if (IsLive(slot.word)) proxies.push_back(slot);
  }

  void AppendTo(std::string& out, Header& header) {
    const uint32_t before = header.ops.count;
    std::erase_if(ops, [&](const OpSlot& slot) {  // taken over while it was copied
      return static_cast<uint32_t>(slot.op.serial / before) != WordGeneration(slot.word);
    });
    std::vector<uint64_t> serials;
    for (const OpSlot& slot : ops) serials.push_back(slot.op.serial);
    const uint32_t places = PlacesFor(serials, before);
    std::vector<std::pair<uint64_t, const OpSlot*>> was;  // old place << 32 | generation
    SmallTable<OpSlot> table(places);
    for (const OpSlot& slot : ops) {
      OpSlot& moved = table.slots[slot.op.serial & (places - 1)];
      moved = slot;
      moved.word = (slot.op.serial / places) << 32 | (slot.word & 0xffffffffu);
      was.emplace_back((slot.op.serial & (before - 1)) << 32 | WordGeneration(slot.word), &moved);
    }
    std::sort(was.begin(), was.end());
    SmallTable<ProxySlot> proxy_table(PowerOfTwoFrom(proxies.size()));
    for (size_t i = 0; i < proxies.size(); ++i) {
      ProxySlot proxy = proxies[i];
      const uint64_t key = uint64_t{proxy.op_slot} << 32 | proxy.op_generation;
      const auto found = std::lower_bound(was.begin(), was.end(), std::pair<uint64_t, const OpSlot*>(key, nullptr));
      const bool known = found != was.end() && found->first == key;
      proxy.op_slot = known ? static_cast<uint32_t>(found->second->op.serial & (places - 1)) : UINT32_MAX;
      proxy.op_generation = known ? WordGeneration(found->second->word) : 0;
      proxy_table.slots[i] = proxy;
    }
    table.AppendTo(out, header.ops);
    proxy_table.AppendTo(out, header.proxies);
  }
};

// The groups that operations in flight belong to. Other groups tell nothing that lasts.
void AppendGroups(const std::vector<Group>& all, const std::vector<OpSlot>& ops, std::string& out, Header& header) {
  std::set<uint32_t> wanted;
  for (const OpSlot& slot : ops)
    if (slot.op.group != 0) wanted.insert(slot.op.group);
  std::vector<Group> kept;
  std::vector<uint64_t> serials;
  for (size_t i = 0; i < all.size(); ++i) {
    const uint64_t serial = all[i].word >> 8;
    if (all[i].word == 0 || serial % all.size() != i || !wanted.contains(static_cast<uint32_t>(serial))) continue;
    kept.push_back(all[i]);
    serials.push_back(serial);
  }
  SmallTable<Group> table(PlacesFor(serials, header.groups.count));
  for (const Group& group : kept) table.slots[(group.word >> 8) & (table.slots.size() - 1)] = group;
  table.AppendTo(out, header.groups);
}

// Places are kept: operations name their communicator by it.
void AppendComms(const std::string& bytes, std::string& out, Table& table) {
  std::vector<Comm> all = EntriesOf<Comm>(bytes);
  while (!all.empty() && all.back().word == 0) all.pop_back();
  SmallTable<Comm> small(PowerOfTwoFrom(all.size()));
  std::copy(all.begin(), all.end(), small.slots.begin());
  small.AppendTo(out, table);
}

void AppendPeers(const std::string& bytes, std::string& out, Table& table) {
  std::vector<Peer> used = EntriesOf<Peer>(bytes);
  std::erase_if(used, [](const Peer& peer) { return peer.key == 0; });
  SmallTable<Peer> small(PowerOfTwoFrom(used.size()));
  std::copy(used.begin(), used.end(), small.slots.begin());
  small.AppendTo(out, table);
}

bool IsWhole(const Record& record, uint64_t index) {
  return record.seq == 2 * (index + 1) && CheckOf(record.op, record.seq) == record.op.check;
}

}  // namespace

BlackBox ReadBoxHeader(std::string_view header_bytes) {
  BlackBox box = ParseBlackBox(header_bytes.substr(0, sizeof(Header)));
  if (box.trouble != BoxTrouble::none) return box;
  const Header& h = box.header;
  const bool large = h.comms.count > kMostComms || h.groups.count > kMostGroups || h.ops.count > kMostSlots ||
                     h.proxies.count > kMostSlots || h.peers.count > kMostSlots ||
                     uint64_t{h.ring.count} * h.ring.stride > kMostRingTableBytes;
  if (large) {
    box.trouble = BoxTrouble::bad_layout;
    box.reason = "a table of the box is larger than any that is written";
  }
  return box;
}

Result<BoxFileReader> BoxFileReader::Open(const std::string& path) { return OpenAt(AT_FDCWD, path); }

Result<BoxFileReader> BoxFileReader::OpenAt(int folder, const std::string& file) {
  BoxFileReader reader;
  reader.fd_ = ::openat(folder, file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (reader.fd_ < 0)
    return Error{std::string("cannot open: ") + std::strerror(errno),
                 errno == EACCES ? "run the agent as root or as the job's user" : ""};
  struct stat seen {};
  if (::fstat(reader.fd_, &seen) != 0 || !S_ISREG(seen.st_mode)) return Error{"is not a regular file", ""};
  reader.device_ = seen.st_dev;
  reader.inode_ = seen.st_ino;
  reader.uid_ = seen.st_uid;
  return reader;
}

uint64_t BoxFileReader::TableBytes(bool* sparse) const {
  *sparse = false;
  const BlackBox head = ReadBoxHeader(Read(0, sizeof(Header)));
  if (head.trouble != BoxTrouble::none) return 0;
  uint64_t bytes = sizeof(Header), end = 0;
  for (const Table* table :
       {&head.header.comms, &head.header.groups, &head.header.ops, &head.header.proxies, &head.header.peers}) {
    bytes += uint64_t{table->count} * table->stride;
    end = std::max(end, table->offset + uint64_t{table->count} * table->stride);
  }
  struct stat seen {};
  struct statfs where {};
  if (::fstat(fd_, &seen) == 0 && ::fstatfs(fd_, &where) == 0)
    *sparse = static_cast<uint64_t>(where.f_type) == kTmpfsMagic && uint64_t(seen.st_blocks) * 512 < end;
  return bytes;
}

BoxFileReader::BoxFileReader(BoxFileReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), device_(other.device_), inode_(other.inode_), uid_(other.uid_) {}

BoxFileReader& BoxFileReader::operator=(BoxFileReader&& other) noexcept {
  std::swap(fd_, other.fd_);
  device_ = other.device_;
  inode_ = other.inode_;
  uid_ = other.uid_;
  return *this;
}

BoxFileReader::~BoxFileReader() {
  if (fd_ >= 0) ::close(fd_);
}

bool BoxFileReader::IsStillAt(int folder, const std::string& path) const {
  struct stat seen {};
  return ::fstatat(folder, path.c_str(), &seen, AT_SYMLINK_NOFOLLOW) == 0 && seen.st_dev == device_ &&
         seen.st_ino == inode_;
}

std::string BoxFileReader::Read(uint64_t offset, uint64_t bytes) const {
  std::string out(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd_, out.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  out.resize(done);
  return out;
}

std::string BoxFileReader::Copy(uint32_t newest) const {
  std::string out = Read(0, sizeof(Header));
  const BlackBox head = ReadBoxHeader(out);
  if (head.trouble != BoxTrouble::none) return out;
  const Header& old = head.header;
  const auto read = [&](const Table& table) { return Read(table.offset, uint64_t{table.count} * table.stride); };
  Header header = old;
  // The tables before the ring: an operation that ends in between is then seen twice, not lost.
  const std::string comms = read(old.comms), groups = read(old.groups);
  OpsInFlight in_flight(read(old.ops), read(old.proxies));
  AppendComms(comms, out, header.comms);
  AppendGroups(EntriesOf<Group>(groups), in_flight.ops, out, header);
  in_flight.AppendTo(out, header);
  AppendPeers(read(old.peers), out, header.peers);

  const uint64_t head_index = header.ring_head;
  uint32_t places = 1;
  while (places < newest && uint64_t{places} * 2 <= old.ring.count) places *= 2;
  SmallTable<Record> ring(places);
  const uint64_t from = newest == 0 || head_index < places ? (newest == 0 ? head_index : 0) : head_index - places;
  for (uint64_t index = from; index < head_index;) {
    const uint64_t place = index % old.ring.count;
    const uint64_t run = std::min(head_index - index, old.ring.count - place);
    const auto records = EntriesOf<Record>(Read(old.ring.offset + place * sizeof(Record), run * sizeof(Record)));
    for (size_t i = 0; i < records.size(); ++i)
      if (IsWhole(records[i], index + i)) ring.slots[(index + i) & (places - 1)] = records[i];
    index += run;
  }
  ring.AppendTo(out, header.ring);
  header.file_bytes = out.size();
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

void BoxFileReader::Follow(RingPlace& place, const std::function<void(const Op&)>& use, uint64_t most_bytes) const {
  const BlackBox head = ReadBoxHeader(Read(0, sizeof(Header)));
  if (head.trouble != BoxTrouble::none) return;
  const uint64_t end = head.header.ring_head, count = head.header.ring.count;
  if (end < place.next) place.next = 0;  // a box that was made anew under the same name
  if (end - place.next > count) {
    place.lapped += end - place.next - count;
    place.next = end - count;
  }
  constexpr uint64_t kAtOnce = 4096;
  const uint64_t stop =
      std::min(end, place.next + std::min(most_bytes, kMostRingBytes) / sizeof(Record));  // the rest is read next time
  while (place.next < stop) {
    const uint64_t at = place.next % count;
    const uint64_t run = std::min({stop - place.next, count - at, kAtOnce});
    const auto records = EntriesOf<Record>(Read(head.header.ring.offset + at * sizeof(Record), run * sizeof(Record)));
    if (records.empty()) return;  // the file was cut
    for (const Record& record : records) {
      if (IsWhole(record, place.next)) {
        use(record.op);
      } else if (record.seq / 2 > place.next + 1) {
        ++place.lapped;
      } else if (place.stalled_at != place.next) {  // still being written: look again next time
        place.stalled_at = place.next;
        return;
      } else {
        ++place.torn;  // its writer gave it up
      }
      ++place.next;
    }
  }
}

}  // namespace tacet
