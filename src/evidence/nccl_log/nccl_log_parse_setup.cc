// SPDX-License-Identifier: Apache-2.0
// The lines around the calls: communicators, settings, devices, connections, errors.
#include "base/text_scan.h"
#include "evidence/nccl_log/nccl_log_fields.h"
#include "evidence/nccl_log/nccl_log_parse.h"

namespace tacet {
namespace {

// " busId 60" -> "60"; leaves `text` alone where the key does not come next.
bool TakeField(std::string_view& text, std::string_view key, std::string_view* value) {
  std::string_view rest = text;
  SkipBlanks(rest);
  if (!TakeLiteral(rest, key) || rest.empty() || rest[0] != ' ') return false;
  *value = TakeWord(rest);
  text = rest;
  return true;
}

template <typename T>
bool TakeNumberField(std::string_view& text, std::string_view key, T* number) {
  std::string_view rest = text, value;
  if (!TakeField(rest, key, &value) || !TakeNumber(value, number)) return false;
  text = rest;
  return true;
}

bool TakeAddressField(std::string_view& text, std::string_view key, uint64_t* address) {
  std::string_view rest = text, value;
  if (!TakeField(rest, key, &value) || !TakeAddress(value, address)) return false;
  text = rest;
  return true;
}

// "1[0]", "1[c8000]" or, in 2.4, "1".
bool TakePlace(std::string_view& text, int32_t* rank) {
  SkipBlanks(text);
  if (!TakeNumber(text, rank)) return false;
  if (!text.empty() && text[0] == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    text.remove_prefix(close + 1);
  }
  return true;
}

}  // namespace

// comm 0x7f6e4c0 rank 3 nranks 8 cudaDev 3 nvmlDev 3 - Init COMPLETE                         (2.4)
// comm 0x7f6e4c0 rank 3 nranks 8 cudaDev 3 busId c8000 - Init COMPLETE                       (2.6)
// ncclCommInitRank comm 0x23167e90 rank 3 nranks 8 cudaDev 0 nvmlDev 0 busId 60 commId 0x74c2aad0c83fa31 - Init START
// ncclCommSplit comm 0x2ad6 rank 1 nranks 4 ... busId 60 parent 0x23167e90 splitCount 1 color 1 key 1- Init START
// [Rank 3] ncclCommInitRank comm 0x23167e90 rank 3 nranks 8 ... commId 0x74c2aad0c83fa31 - Init START   (2.29)
bool ParseInit(std::string_view message, NcclInit* init) {
  *init = {};
  init->complete = message.ends_with("Init COMPLETE");
  if (!init->complete && !message.ends_with("Init START")) return false;
  std::string_view text = message;
  if (!text.starts_with("comm ")) {
    const size_t at = text.find(" comm ");
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at);
  }
  if (!TakeAddressField(text, "comm", &init->comm) || !TakeNumberField(text, "rank", &init->rank) ||
      !TakeNumberField(text, "nranks", &init->nranks))
    return false;
  std::string_view unused;
  TakeNumberField(text, "cudaDev", &init->device);
  TakeField(text, "nvmlDev", &unused);
  TakeField(text, "busId", &init->bus_id);
  init->is_split = TakeAddressField(text, "parent", &init->parent);
  if (!TakeNumberField(text, "splitCount", &init->child_count)) TakeNumberField(text, "childCount", &init->child_count);
  TakeNumberField(text, "color", &init->color);
  TakeField(text, "key", &unused);
  TakeAddressField(text, "commId", &init->comm_id);
  return init->rank >= 0 && init->nranks > init->rank;
}

// ncclCommInitRank(0x55d0c0a0, 8, 0x74c2aad0c83fa31, 3, 3)     comm, nranks, commId, rank, device
// ncclCommSplit(0x55d0c0a0, 1, 1, 0x55d0ff00, 1, 4)            parent, color, key, comm, rank, nranks
bool ParseApiInit(std::string_view message, NcclInit* init) {
  *init = {};
  init->complete = true;
  int32_t key = 0;
  if (TakeLiteral(message, "ncclCommInitRank(")) {
    if (!TakeAddressArgument(message, &init->comm) || !TakeNumberArgument(message, &init->nranks) ||
        !TakeAddressArgument(message, &init->comm_id) || !TakeNumberArgument(message, &init->rank) ||
        !TakeNumberArgument(message, &init->device))
      return false;
  } else if (TakeLiteral(message, "ncclCommSplit(")) {
    init->is_split = true;
    if (!TakeAddressArgument(message, &init->parent) || !TakeNumberArgument(message, &init->color) ||
        !TakeNumberArgument(message, &key) || !TakeAddressArgument(message, &init->comm) ||
        !TakeNumberArgument(message, &init->rank) || !TakeNumberArgument(message, &init->nranks))
      return false;
  } else {
    return false;
  }
  return init->rank >= 0 && init->nranks > init->rank;
}

// comm 0x1c73b720 rank 1 nranks 4 cudaDev 0 busId 60 - Destroy COMPLETE
// comm 0x23d7ab90 rank 1 nRanks 4 cudaDev 0 busId 60 - Abort START
// comm 0x23d7ab90 rank 1 nRanks 4 cudaDev 0 busId 60 - Revoke COMPLETE, result 0
bool ParseCommEnd(std::string_view message, NcclCommEnd* end) {
  *end = {};
  if (!TakeAddressField(message, "comm", &end->comm) || !TakeNumberField(message, "rank", &end->rank)) return false;
  if (!TakeNumberField(message, "nranks", &end->nranks) && !TakeNumberField(message, "nRanks", &end->nranks))
    return false;
  const size_t dash = message.rfind(" - ");
  if (dash == std::string_view::npos) return false;
  std::string_view text = message.substr(dash + 3);
  if (TakeLiteral(text, "Destroy "))
    end->kind = NcclCommEnd::Kind::destroy;
  else if (TakeLiteral(text, "Abort "))
    end->kind = NcclCommEnd::Kind::abort;
  else if (TakeLiteral(text, "Revoke "))
    end->kind = NcclCommEnd::Kind::revoke;
  else
    return false;
  end->complete = text.starts_with("COMPLETE");
  return end->complete || text.starts_with("START");
}

// PROFILER/Plugin: init commName: dp_group commHash: 13648531030292480976 nranks: 4 rank: 1
bool ParseCommHash(std::string_view message, NcclCommHash* hash) {
  *hash = {};
  if (!TakeLiteral(message, "PROFILER/Plugin: init commName: ")) return false;
  const size_t at = message.find("commHash: ");
  if (at == std::string_view::npos) return false;
  hash->name = Trim(message.substr(0, at));
  message.remove_prefix(at + 10);
  return TakeNumber(message, &hash->hash) && TakeLiteral(message, " nranks: ") && TakeNumber(message, &hash->nranks) &&
         TakeLiteral(message, " rank: ") && TakeNumber(message, &hash->rank);
}

// NCCL_MAX_NCHANNELS set by environment to 1.
// NCCL_SOCKET_IFNAME set by environment to ib7
// NCCL_IB_HCA set to mlx5_0,mlx5_1
bool ParseEnvironment(std::string_view message, NcclSetting* setting) {
  setting->name = TakeWord(message);
  if (!TakeLiteral(message, " set by environment to ") && !TakeLiteral(message, " set to ")) return false;
  setting->value = Trim(message);
  // Only integer parameters are printed with a full stop; in "./topo.xml" or "10." of a string it would be part of the
  // value.
  if (setting->value.ends_with('.')) {
    std::string_view digits = setting->value.substr(0, setting->value.size() - 1), rest = digits;
    int64_t number = 0;
    if (TakeNumber(rest, &number) && rest.empty()) setting->value = digits;
  }
  return setting->name.starts_with("NCCL_");
}

// Channel 00/0 : 1[0] -> 2[0] [send] via NET/Socket/0/Shared
// Channel 03/1 : 0[c8000] -> 1[cb000] via P2P/IPC/read
// Channel 02 : 3[1b000] -> 0[1c000] via direct shared memory            (2.7)
// Ring 00 : 0 -> 1 [send] via NET/IB/0/GDRDMA                           (2.4)
// CollNet 00/1 : 3 [receive] via COLLNET/SHARP/0/GDRDMA
bool ParseConnection(std::string_view message, NcclConnection* connection) {
  *connection = {};
  connection->is_collnet = message.starts_with("Coll");
  TakeWord(message);
  SkipBlanks(message);
  if (!TakeNumber(message, &connection->channel)) return false;
  if (TakeLiteral(message, "/")) TakeNumber(message, &connection->index);
  const size_t colon = message.find(" : ");
  const size_t via = message.find(" via ");
  if (colon == std::string_view::npos || via == std::string_view::npos || via < colon) return false;
  connection->via = Trim(message.substr(via + 5));
  std::string_view ends = message.substr(colon + 3, via - colon - 3);
  if (!TakePlace(ends, &connection->from)) return false;
  if (!connection->is_collnet && (!TakeLiteral(ends, " -> ") || !TakePlace(ends, &connection->to))) return false;
  ends = Trim(ends);
  if (ends == "[send]") connection->direction = NcclConnection::Direction::send;
  if (ends == "[receive]") connection->direction = NcclConnection::Direction::receive;
  return true;
}

// Channel 00/0 : 1[0] -> 2[0] [send] via NET/Socket/0/Shared
// Channel 03/1 : 0[c8000] -> 1[cb000] via P2P/IPC/read
bool ParseChannelConnection(std::string_view message, NcclConnection* connection) {
  FieldCursor at(message);
  if (!at.Literal("Channel ") || !at.Small(&connection->channel) || !at.Literal("/") || !at.Small(&connection->index) ||
      !at.Literal(" : ") || !at.Small(&connection->from) || !at.Bracket() || !at.Literal(" -> ") ||
      !at.Small(&connection->to) || !at.Bracket())
    return false;
  if (at.Literal(" via "))
    connection->direction = NcclConnection::Direction::both;
  else if (at.Literal(" [send] via "))
    connection->direction = NcclConnection::Direction::send;
  else if (at.Literal(" [receive] via "))
    connection->direction = NcclConnection::Direction::receive;
  else
    return false;
  connection->via = at.rest();
  return !connection->via.empty() && !IsSpace(connection->via.front()) && !IsSpace(connection->via.back());
}

bool IsSameWay(const NcclConnection& a, const NcclConnection& b) {
  return a.from == b.from && a.to == b.to && a.direction == b.direction && (a.index > 0) == (b.index > 0) &&
         a.is_collnet == b.is_collnet && a.via == b.via;
}

uint64_t HashViaClass(std::string_view via) {
  if (via.ends_with("/Shared")) via.remove_suffix(7);
  const bool by_device = via.starts_with("NET/") || via.starts_with("COLLNET/") || via.starts_with("P2P/indirect/");
  uint64_t hash = 1469598103934665603u;
  bool skipping = false;
  for (size_t i = 0; i < via.size(); ++i) {
    if (via[i] == '/') skipping = by_device && i + 1 < via.size() && via[i + 1] >= '0' && via[i + 1] <= '9';
    if (!skipping) hash = (hash ^ static_cast<unsigned char>(via[i])) * 1099511628211u;
  }
  return hash;
}

// Bootstrap: Using eth0:10.0.0.1<0>
// NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:fe80::1%eth1<0>
// NET/IB : Using [0]mlx5_0:1/IB [1]={[0] mlx5_1:1/RoCE, [1] mlx5_2:1/RoCE} [RO]; OOB eth0:10.0.0.1<0>
bool TakeDevice(std::string_view& list, NcclDevice* device) {
  for (;;) {
    std::string_view word = TakeWord(list);
    if (word.empty()) return false;
    while (word.starts_with("[") || word.starts_with("=") || word.starts_with("{")) {
      const size_t close = word.find(']');
      word.remove_prefix(word[0] == '[' && close != std::string_view::npos ? close + 1 : 1);
    }
    while (word.ends_with(",") || word.ends_with("}") || word.ends_with(";")) word.remove_suffix(1);
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    *device = {word, {}};
    if (const size_t port = word.find('<', colon); port != std::string_view::npos)
      *device = {word.substr(0, colon), word.substr(colon + 1, port - colon - 1)};
    return true;
  }
}

// misc/socket.cc:845 -> 6
// proxy.cc:965 -> 6 [Progress Thread]
// init.cc:2158 (ncclCommInitRankDev) -> 5
int64_t ParsePropagation(std::string_view message) {
  const size_t arrow = message.find(" -> ");
  if (arrow == std::string_view::npos) return -1;
  std::string_view rest = message.substr(arrow + 4);
  int64_t code = -1;
  return TakeNumber(rest, &code) && code >= 0 ? code : -1;
}

}  // namespace tacet
