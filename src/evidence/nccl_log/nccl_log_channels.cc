// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_channels.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/text_scan.h"
#include "evidence/nccl_log/nccl_log_fields.h"
#include "evidence/nccl_log/nccl_log_topology.h"

namespace tacet {
namespace {

constexpr uint32_t kNoComm = CommunicatorTable::kNone;
constexpr size_t kMostTransports = 1 << 16;  // ways that differ; a made-up file must not cost memory without end

// RCCL writes "comm 0x55.. nRanks 08 busId c1000" behind such lines.
uint64_t AddressAtEnd(std::string_view& message) {
  if (message.size() < 8 || message.find(' ') == std::string_view::npos) return 0;
  const size_t at = message.rfind(" comm 0x");
  if (at == std::string_view::npos) return 0;
  std::string_view rest = message.substr(at + 6);
  uint64_t address = 0;
  if (!TakeAddress(rest, &address)) return 0;
  message = message.substr(0, at);
  return address;
}

// Where a text is looked for among the known ones. Device and relay, which differ, stand in the first bytes.
size_t SpreadOf(std::string_view text) {
  uint64_t front = 0, back = 0;
  const size_t part = std::min(text.size(), sizeof front);
  const size_t from = std::min<size_t>(6, text.size() - part);
  std::memcpy(&front, text.data() + from, part);
  std::memcpy(&back, text.data() + text.size() - part, part);
  return static_cast<size_t>((front * 0x9e3779b97f4a7c15u ^ back * 0xbf58476d1ce4e5b9u ^ text.size()) >> 40);
}

bool IsSameWay(const ChannelUse& a, const ChannelUse& b) {
  return std::tie(a.from, a.to, a.transport, a.direction, a.point_to_point) ==
         std::tie(b.from, b.to, b.transport, b.direction, b.point_to_point);
}

// Channels of one way are printed one by one, those of rings in turn with others. Sends and receives stand together
// already, and there may be thousands of them.
void MergeUses(std::vector<ChannelUse>& uses) {
  const auto of_collectives =
      std::stable_partition(uses.begin(), uses.end(), [](const ChannelUse& use) { return !use.point_to_point; });
  std::stable_sort(uses.begin(), of_collectives, [](const ChannelUse& a, const ChannelUse& b) {
    return std::tie(a.point_to_point, a.from, a.to, a.direction, a.transport) <
           std::tie(b.point_to_point, b.from, b.to, b.direction, b.transport);
  });
  size_t kept = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (kept > 0 && IsSameWay(uses[kept - 1], uses[i]))
      uses[kept - 1].channels.Merge(uses[i].channels);
    else
      uses[kept++] = uses[i];
  }
  uses.resize(kept);
}

template <typename Place>
void PutPlace(std::vector<Place>& places, const Place& place) {
  if (place.channel < 0 || place.channel >= ChannelSet::kMost) return;
  // They come in order; a channel told twice (by "Tree" and by "Trees") is told the same.
  for (Place& known : places)
    if (known.channel == place.channel) {
      known = place;
      return;
    }
  places.push_back(place);
}

int32_t LargestIn(const std::vector<int32_t>& ranks) {
  return ranks.empty() ? -1 : *std::max_element(ranks.begin(), ranks.end());
}

}  // namespace

bool NcclLogChannels::Fits(uint32_t comm, uint32_t writer, int32_t own_rank, int32_t largest) const {
  const Communicator& one = comms_[comm];
  return one.writer == writer && one.init_seen && (own_rank < 0 || one.rank == own_rank) && largest < one.nranks;
}

// The newest one: connections are made at first use, soon after a communicator is made.
uint32_t NcclLogChannels::AnyThatFits(uint32_t writer, int32_t own_rank, int32_t largest) const {
  const auto found = comms_of_writer_.find(writer);
  if (found == comms_of_writer_.end()) return kNoComm;
  for (auto it = found->second.rbegin(); it != found->second.rend(); ++it)
    if (Fits(*it, writer, own_rank, largest)) return *it;
  return kNoComm;
}

RankChannels& NcclLogChannels::RecordOfComm(uint32_t comm, const NcclLogLine& line) {
  const auto [place, is_new] = record_of_comm_.try_emplace(comm, static_cast<uint32_t>(records_.size()));
  if (is_new) {
    records_.emplace_back().first_line = line.number;
    comm_of_record_.push_back(comm);
    writer_of_record_.push_back(line.writer);
  }
  last_thread_ = ThreadKey(line);
  last_record_ = place->second;
  return records_[place->second];
}

RankChannels& NcclLogChannels::PendingRecord(const NcclLogLine& line) {
  const auto [place, is_new] = pending_.try_emplace(ThreadKey(line), static_cast<uint32_t>(records_.size()));
  if (is_new) {
    records_.emplace_back().first_line = line.number;
    comm_of_record_.push_back(kNoComm);
    writer_of_record_.push_back(line.writer);
  }
  return records_[place->second];
}

RankChannels& NcclLogChannels::RecordOf(const NcclLogLine& line, int32_t own_rank, int32_t largest, uint64_t address,
                                        uint32_t current) {
  if (address != 0) {
    const uint32_t named = comms_.Find(line.writer, address);
    if (named != kNoComm) return RecordOfComm(named, line);
  }
  if (last_record_ != kNoComm && last_thread_ == ThreadKey(line)) {  // the line before was of the same thread
    const uint32_t comm = comm_of_record_[last_record_];
    const bool holds = comm != kNoComm && (comm == current || !comms_[comm].completed);
    if (holds && Fits(comm, line.writer, own_rank, largest)) return records_[last_record_];
  }
  const auto start = tells_start_.find(line.writer);
  if (start == tells_start_.end() || !start->second) return PendingRecord(line);
  const auto thread = comm_of_thread_.find(ThreadKey(line));
  const uint32_t own = thread == comm_of_thread_.end() ? kNoComm : thread->second;
  if (own != kNoComm && !comms_[own].completed && Fits(own, line.writer, own_rank, largest))
    return RecordOfComm(own, line);
  if (current != kNoComm && Fits(current, line.writer, own_rank, largest)) return RecordOfComm(current, line);
  if (own != kNoComm && Fits(own, line.writer, own_rank, largest)) return RecordOfComm(own, line);
  const uint32_t any = AnyThatFits(line.writer, own_rank, largest);
  return any != kNoComm ? RecordOfComm(any, line) : PendingRecord(line);
}

// A thread connects one communicator after another: what it prints from the first connection to "Connected all rings"
// belongs together, although many of these lines fit other communicators as well.
RankChannels& NcclLogChannels::RecordOfConnecting(const NcclLogLine& line, int32_t own_rank, int32_t largest,
                                                  uint64_t address, uint32_t current, bool connected) {
  const auto found = address != 0 ? connecting_.end() : connecting_.find(ThreadKey(line));
  if (found != connecting_.end() && found->second.current == current && (connected || !found->second.connected) &&
      Fits(found->second.comm, line.writer, own_rank, largest)) {
    found->second.connected = connected;
    return RecordOfComm(found->second.comm, line);
  }
  RankChannels& record = RecordOf(line, own_rank, largest, address, current);
  const uint32_t comm = comm_of_record_[static_cast<size_t>(&record - records_.data())];
  if (comm != kNoComm && comms_[comm].completed) connecting_[ThreadKey(line)] = {comm, current, connected};
  return record;
}

void NcclLogChannels::TakeInit(const NcclLogLine& line, uint32_t comm, bool complete, bool told_start) {
  if (!complete || told_start) tells_start_[line.writer] = true;
  comm_of_thread_[ThreadKey(line)] = comm;
  last_record_ = kNoComm;
  std::vector<uint32_t>& own = comms_of_writer_[line.writer];
  if (own.empty() || own.back() != comm) own.push_back(comm);
  if (complete) {
    if (const auto pending = pending_.find(ThreadKey(line)); pending != pending_.end()) {
      const bool free = record_of_comm_.try_emplace(comm, pending->second).second;
      if (free) comm_of_record_[pending->second] = comm;
      pending_.erase(pending);
    }
    if (const auto found = record_of_comm_.find(comm); found != record_of_comm_.end())
      records_[found->second].connected_in_setup = records_[found->second].rings_connected;
  }
}

const NcclLogChannels::KnownWay& NcclLogChannels::WayOf(std::string_view via) {
  KnownWay& known = known_ways_[SpreadOf(via) % kKnownWays];
  if (known.via == via && !via.empty()) return known;
  known.via = via;
  known.kind = HashViaClass(via);
  known.address = AddressAtEnd(via);
  known.transport = TransportOf(via);
  return known;
}

uint32_t NcclLogChannels::TransportOf(std::string_view via) {
  const auto [place, is_new] = transports_.try_emplace(via, static_cast<uint32_t>(out_.transports.size()));
  if (is_new) {
    if (out_.transports.size() >= kMostTransports)
      place->second = 0;
    else
      out_.transports.push_back(ParseTransport(via));
  }
  return place->second;
}

void NcclLogChannels::TakeConnection(const NcclLogLine& line, const NcclConnection& connection,
                                     const ChannelSet& channels, uint32_t current) {
  const KnownWay& way = WayOf(connection.via);
  ChannelUse use;
  use.from = connection.from;
  use.to = connection.is_collnet ? -1 : connection.to;
  use.direction = static_cast<ChannelUse::Direction>(connection.direction);
  use.point_to_point = connection.index > 0;
  use.transport = way.transport;
  use.line = line.number;
  use.offset = line.offset;
  use.channels = channels;
  const bool receives = use.direction == ChannelUse::Direction::receive && !connection.is_collnet;
  const int32_t own = receives ? use.to : use.from;
  const int32_t largest = std::max(use.from, use.to);
  RankChannels& record = use.point_to_point ? RecordOf(line, own, largest, way.address, current)
                                            : RecordOfConnecting(line, own, largest, way.address, current, false);
  if (!record.group_rank.known()) record.group_rank = GroupRank{own};
  for (size_t i = record.uses.size(); i-- > 0 && i + 3 >= record.uses.size();)
    if (IsSameWay(record.uses[i], use)) {
      record.uses[i].channels.Merge(use.channels);
      return;
    }
  record.uses.push_back(use);
}

bool NcclLogChannels::TakePlace(const NcclLogLine& line, uint32_t current) {
  std::string_view message = line.message;
  const uint64_t address = AddressAtEnd(message);
  NcclRing ring;
  std::vector<NcclTree> trees;
  NcclChannelOrder order;
  NcclConnected connected;
  if (ParseRing(message, &ring)) {
    if (ring.ranks.size() != 3) return true;  // a whole ring, as documents draw it
    RankChannels& record = RecordOf(line, ring.ranks[1], LargestIn(ring.ranks), address, current);
    if (record.rings_line == 0) record.rings_line = line.number;
    if (!record.group_rank.known()) record.group_rank = GroupRank{ring.ranks[1]};
    PutPlace(record.rings, RingPlace{ring.channel, ring.ranks[0], ring.ranks[2]});
  } else if (ParseTrees(message, &trees)) {
    RankChannels& record = RecordOf(line, trees[0].rank, trees[0].rank, address, current);
    if (!record.group_rank.known()) record.group_rank = GroupRank{trees[0].rank};
    for (const NcclTree& tree : trees)
      PutPlace(record.trees, TreePlace{tree.channel, tree.up, {tree.down[0], tree.down[1], tree.down[2]}});
  } else if (ParseChannelOrder(message, &order)) {
    RankChannels& record = RecordOf(line, -1, LargestIn(order.ranks), address, current);
    PutPlace(record.orders, RingOrder{order.channel, order.channels, std::move(order.ranks), order.cut});
  } else if (ParseConnected(message, &connected)) {
    RankChannels& record = RecordOfConnecting(line, -1, -1, address, current, true);
    if (connected.what.starts_with("all rings")) {
      record.rings_connected = true;
      record.connected_line = line.number;
      record.ring_pxn = connected.pxn;
      record.ring_gdr = connected.gdr;
    }
    record.trees_connected |= connected.what.starts_with("all trees");
    record.nvls_connected |= connected.what.starts_with("NVLS");
    record.collnet_connected |= connected.what.starts_with("Coll");
  } else if (message.starts_with("NVLS comm ")) {
    RecordOf(line, -1, -1, 0, current).nvls_connected = true;
  } else if (TakeLiteral(message, "NVLS multicast support is ")) {
    RankChannels& record = RecordOf(line, -1, -1, 0, current);
    record.nvls_multicast = message.starts_with("not ") ? 0 : 1;
    record.multicast_line = line.number;
  } else {
    return false;
  }
  return true;
}

void NcclLogChannels::Finish(const std::vector<uint32_t>& speakers) {
  for (size_t i = 0; i < records_.size(); ++i) {
    RankChannels& record = records_[i];
    const uint32_t writer = writer_of_record_[i];
    uint32_t comm = comm_of_record_[i];
    if (comm == kNoComm) comm = AnyThatFits(writer, record.group_rank.value, record.group_rank.value);
    record.speaker = writer < speakers.size() ? speakers[writer] : kNobody;
    if (comm != kNoComm) {
      record.speaker = comms_[comm].speaker;
      record.group = comms_[comm].group;
      record.group_rank = GroupRank{comms_[comm].rank};
      record.ranks = comms_[comm].nranks;
    }
    MergeUses(record.uses);
    record.uses.shrink_to_fit();
    if (!record.rings_connected) record.connected_in_setup = false;
  }
  out_.rank_channels = std::move(records_);
  for (NetDevices& devices : out_.net_devices)
    devices.speaker = devices.speaker < speakers.size() ? speakers[devices.speaker] : kNobody;
}

NetDevices& NcclLogChannels::DevicesOf(uint32_t writer) {
  const auto [place, is_new] = devices_of_writer_.try_emplace(writer, static_cast<uint32_t>(out_.net_devices.size()));
  if (is_new) out_.net_devices.emplace_back().speaker = writer;
  return out_.net_devices[place->second];
}

// NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
// NET/IB : Using [0]mlx5_0:1/IB [1]={[0] mlx5_1:1/RoCE, [1] mlx5_2:1/RoCE} [RO]; OOB eth0:10.0.0.1<0>
// NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.0.1.1<0>
void NcclLogChannels::TakeDevices(const NcclLogLine& line) {
  constexpr size_t kMostDevices = 256;
  std::string_view text = line.message;
  if (!TakeLiteral(text, "NET/")) return;
  const std::string_view net = Trim(TakeUntil(text, ':'));
  const size_t first = text.find('[');
  if (first == std::string_view::npos) return;
  text = text.substr(first, text.find("; OOB") - first);
  NetDevices& known = DevicesOf(line.writer);
  if (!known.devices.empty() && (known.net == net || net == "Socket")) return;
  known.devices.clear();
  known.net = net.substr(0, 64);
  known.source = {FileId{0}, line.number, line.offset};
  int depth = 0;
  while (!text.empty() && known.devices.size() < kMostDevices) {
    if (text[0] == '{') ++depth;
    if (text[0] == '}') --depth;
    NetDevice device;
    if (!TakeLiteral(text, "[")) {
      text.remove_prefix(1);
      continue;
    }
    if (!TakeNumber(text, &device.index) || !TakeLiteral(text, "]")) continue;
    if (text.starts_with("=")) {  // several ports as one device: its parts follow in braces
      known.devices.push_back(device);
      continue;
    }
    SkipBlanks(text);
    size_t end = 0;
    while (end < text.size() && text[end] != ' ' && text[end] != ',' && text[end] != '}') ++end;
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    device.name = word.substr(0, std::min(word.find(':'), size_t{64}));
    if (const size_t slash = word.rfind('/'); slash != std::string_view::npos) device.link = word.substr(slash + 1, 16);
    if (depth > 0 && !known.devices.empty()) {
      NetDevice& joined = known.devices.back();
      joined.name += (joined.name.empty() ? "" : "+") + device.name;
      joined.link = device.link;
    } else {
      known.devices.push_back(std::move(device));
    }
  }
}

// NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'
// NET/OFI Selected Provider is efa (found 4 nics)
// PXN Disabled as plugin is v4
bool NcclLogChannels::TakeNetRemark(const NcclLogLine& line) {
  const std::string_view message = line.message;
  if (message.starts_with("PXN Disabled")) {
    NetDevices& known = DevicesOf(line.writer);
    known.pxn_disabled = true;
    known.pxn_source = {FileId{0}, line.number, line.offset};
    return true;
  }
  if (const auto found = IntAfter<int32_t>(message, "(found "); found && Contains(message, " nics)")) {
    NetDevices& known = DevicesOf(line.writer);
    known.claimed = *found;
    if (known.net.empty() || known.net == "Socket") {
      known.net = "OFI";
      known.devices.clear();
    }
    return true;
  }
  const auto rest = After(message, ": GPU Direct RDMA ");
  if (!rest) return false;
  const auto index = IntAfter<int32_t>(*rest, " for HCA ");
  if (!index) return false;
  for (NetDevice& device : DevicesOf(line.writer).devices)
    if (device.index == *index) device.gdr = rest->starts_with("Enabled") ? 1 : 0;
  return true;
}

}  // namespace tacet
