// SPDX-License-Identifier: Apache-2.0
// HCCL's rank 0 waits for all others at setup, and tells who connected when its time is up:
//   EI0015: ... the server times out waiting for ranks to connect. 7 of 8 ranks connected.
//   [ERROR] HCCL(4711,python):... [4790][InitGroupStage][RanktableDetect]topo exchange server get socket timeout! ...
//   [ERROR] HCCL(4711,python):... [DisplayConnectionedRank]total connected num is [3],line num is [1]
//   [ERROR] HCCL(4711,python):... [DisplayConnectionedRank]need connect rankNum is [4]
//   [ERROR] HCCL(4711,python):... connected rankinfo[LINE 0]: [0000000000000000],[0000000000000001],[...0003];
// Those who did connect are told whom it lacks:
//   [ERROR] HCCL(4715,python):... TopoDetect ERROR occur !!! fault_type[1], fault_info["Failed to connect agent[2,]"]
#include <algorithm>
#include <set>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/libraries/torch_log_ascend.h"

namespace tacet {
namespace {

constexpr int64_t kMostConnected = 100'000;

// "[0000000000000000],[0000000000000002];"
void TakeConnected(std::string_view list, TorchLogRecord& record) {
  for (auto rest = After(list, "["); rest; rest = After(*rest, "[")) {
    int32_t rank = -1;
    if (!TakeNumber(*rest, &rank) || !rest->starts_with(']') || rank < 0) return;
    if (static_cast<int64_t>(record.waiting.size()) < kMostConnected) record.waiting.push_back(rank);
  }
}

// "1,3,5,7,]"
void TakeNotConnected(std::string_view list, TorchLogRecord& record) {
  std::vector<int32_t> ranks;
  while (!list.starts_with(']')) {
    int32_t rank = -1;
    if (!TakeNumber(list, &rank) || rank < 0 || std::ssize(ranks) >= kMostConnected) return;
    ranks.push_back(rank);
    if (!TakeLiteral(list, ",")) break;
  }
  if (list.starts_with(']')) record.ranks = std::move(ranks);
}

// Who is missing, once all who connected are listed.
void FindNotConnected(TorchLogRecord& record) {
  const std::set<int32_t> connected(record.waiting.begin(), record.waiting.end());
  if (record.value2 <= 0 || record.value2 > kMostConnected || std::ssize(connected) != record.value ||
      (!connected.empty() && *connected.rbegin() >= record.value2))
    return;
  record.ranks.clear();
  for (int32_t rank = 0; rank < record.value2; ++rank)
    if (!connected.contains(rank)) record.ranks.push_back(rank);
}

// "... 7 of 8 ranks connected"
bool TakeCounts(std::string_view text, TorchLogRecord& record) {
  const size_t end = text.find(" ranks connected");
  if (end == std::string_view::npos || !ContainsAny(text, {"HCCL", "EI00"})) return false;
  const size_t of = text.substr(0, end).rfind(" of ");
  if (of == std::string_view::npos || of == 0) return false;
  const size_t begin = text.rfind(' ', of - 1);
  std::string_view joined = text.substr(begin == std::string_view::npos ? 0 : begin + 1);
  std::string_view expected = text.substr(of + 4);
  int64_t some = -1, all = -1;
  if (!TakeNumber(joined, &some) || !TakeNumber(expected, &all) || some < 0 || some >= all) return false;
  record.value = some;
  record.value2 = all;
  return true;
}

// EI0009: ... Transport init error. Reason: [Create][DestLink]Create Dest error! createLink para:rank[1]-
// localUserrank[1]-localIpAddr[172.16.0.114], dst_rank[0]-remoteUserrank[0]-remote_ip_addr[172.16.0.115]
LineUse ReadLinkError(const LogLine& line, RecordList& out) {
  const auto address = After(line.text, "remote_ip_addr[");
  if (!address || !Contains(line.text, "Create Dest error")) return LineUse::not_understood;
  const int32_t rank = IntAfter<int32_t>(line.text, "localUserrank[").value_or(-1);
  const auto [record, is_new] = out.AddOnce(TorchLogKind::connect_failed, line, "hccl" + std::to_string(rank));
  if (!is_new) return LineUse::understood;
  if (rank >= 0 && rank < kMostConnected) record->rank = rank;
  record->peer = IntAfter<int32_t>(line.text, "remoteUserrank[").value_or(-1);
  record->object = Capped(address->substr(0, address->find(']')), 100);
  record->text = Capped(Trim(line.text), 600);
  return LineUse::understood;
}

}  // namespace

LineUse ReadAscendSetup(const LogLine& line, AscendBlock& block, RecordList& out) {
  if (const LineUse use = ReadLinkError(line, out); use != LineUse::not_understood) return use;
  const std::string_view text = line.text;
  const auto connected = IntAfter(text, "total connected num is [");
  const auto needed = IntAfter(text, "need connect rankNum is [");
  const auto list = After(text, "connected rankinfo[LINE ");
  const auto lacking = After(text, "Failed to connect agent[");
  TorchLogRecord counted;
  const bool counts = TakeCounts(text, counted);
  if (!connected && !needed && !list && !counts && !lacking &&
      !Contains(text, "topo exchange server get socket timeout"))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::rendezvous_incomplete, line, "hccl");
  if (is_new) record->text = Capped(Trim(text));
  if (!is_new && record->repeats > 1) --record->repeats;  // a line of the same report
  if (record->pid < 0) record->pid = IntAfter(text, "HCCL(").value_or(IntAfter(text, "[PID: ").value_or(block.pid));
  if (counts) record->value = counted.value, record->value2 = counted.value2;
  if (connected) record->value = *connected;
  if (needed) record->value2 = *needed;
  if (list) TakeConnected(list->substr(std::min(list->find(": "), list->size())), *record);
  if (lacking) TakeNotConnected(*lacking, *record);
  // The line that tells the numbers is the one to show.
  if (counts || connected || lacking || (list && record->waiting.size() <= 8)) {
    record->text = Capped(Trim(text));
    record->source = line.source;
  }
  if (record->ranks.empty()) FindNotConnected(*record);
  return LineUse::understood;
}

}  // namespace tacet
