// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_topology.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMaxListed = 1 << 16;  // ranks in one line

bool TakeArrow(std::string_view& text) {
  SkipBlanks(text);
  if (!TakeLiteral(text, "->")) return false;
  SkipBlanks(text);
  return true;
}

// "1/-1/-1"
bool TakeThree(std::string_view& text, int32_t (&ranks)[3]) {
  for (int i = 0; i < 3; ++i) {
    if (i > 0 && !TakeLiteral(text, "/")) return i >= 2;  // old trees have two children
    if (!TakeNumber(text, &ranks[i])) return false;
  }
  return true;
}

template <size_t N>
std::string_view NumberedName(std::string_view printed, const std::string_view (&names)[N]) {
  size_t number = 0;
  std::string_view rest = printed;
  return TakeNumber(rest, &number) && rest.empty() && number < N ? names[number] : printed;
}

}  // namespace

// Ring 00 : 3 -> 0 -> 1
// Ring 00 : 0 -> 1 -> 2 -> 3 -> 0
bool ParseRing(std::string_view message, NcclRing* ring) {
  ring->ranks.clear();
  if (!TakeLiteral(message, "Ring ") || !TakeNumber(message, &ring->channel) || !TakeLiteral(message, " : "))
    return false;
  do {
    int32_t rank = -1;
    SkipBlanks(message);
    if (!TakeNumber(message, &rank) || ring->ranks.size() >= kMaxListed) return false;
    ring->ranks.push_back(rank);
  } while (TakeArrow(message));
  return Trim(message).empty() && ring->ranks.size() >= 2;
}

// Trees [0] 2/-1/-1->0->-1 [1] -1/-1/-1->0->1
// Tree 0 : -1 -> 0 -> 2/-1/-1                                 up, rank, down: the other way round
bool ParseTrees(std::string_view message, std::vector<NcclTree>* trees) {
  trees->clear();
  if (TakeLiteral(message, "Tree ")) {
    NcclTree tree;
    if (!TakeNumber(message, &tree.channel) || !TakeLiteral(message, " : ") || !TakeNumber(message, &tree.up) ||
        !TakeArrow(message) || !TakeNumber(message, &tree.rank) || !TakeArrow(message) ||
        !TakeThree(message, tree.down))
      return false;
    trees->push_back(tree);
    return true;
  }
  if (!TakeLiteral(message, "Trees")) return false;
  for (SkipBlanks(message); TakeLiteral(message, "["); SkipBlanks(message)) {
    NcclTree tree;
    if (!TakeNumber(message, &tree.channel) || !TakeLiteral(message, "] ") || !TakeThree(message, tree.down) ||
        !TakeArrow(message) || !TakeNumber(message, &tree.rank) || !TakeArrow(message) ||
        !TakeNumber(message, &tree.up) || trees->size() >= kMaxListed)
      return false;
    trees->push_back(tree);
  }
  return message.empty() && !trees->empty();
}

// Channel 00/02 : 0 1 2 3
// Channel 00/02 :    0   1   2   3
bool ParseChannelOrder(std::string_view message, NcclChannelOrder* order) {
  *order = {};
  if (!TakeLiteral(message, "Channel ") || !TakeNumber(message, &order->channel)) return false;
  if (TakeLiteral(message, "/") && !TakeNumber(message, &order->channels)) return false;
  if (!TakeLiteral(message, " :")) return false;
  for (;;) {
    int32_t rank = -1;
    SkipBlanks(message);
    order->cut = TakeLiteral(message, "...");
    if (order->cut || message.empty()) break;
    if (!TakeNumber(message, &rank) || order->ranks.size() >= kMaxListed) return false;
    order->ranks.push_back(rank);
  }
  return !order->ranks.empty();
}

// Connected all rings, use ring PXN 0 GDR 1
// Connected all trees
bool ParseConnected(std::string_view message, NcclConnected* connected) {
  *connected = {};
  if (!TakeLiteral(message, "Connected ")) return false;
  connected->what = TakeUntil(message, ',');
  connected->pxn = IntAfter<int32_t>(message, "PXN ").value_or(-1);
  connected->gdr = IntAfter<int32_t>(message, "GDR ").value_or(-1);
  return !connected->what.empty();
}

// AllReduce: 4198400 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}      (2.24)
// AllReduce: 4198400 Bytes -> Algo 1 proto 2 time 812.500000                     (2.23; before, without the name)
// AllGather [Symmetric]: 4096 Bytes -> Kernel AllGather_LL nchannels 2 nthreads 512 nWorks 1
// AllGather [Copy Engine]: 4194304 Bytes -> cudaMemcpyBatchAsync
bool ParseChoice(std::string_view message, NcclChoice* choice) {
  *choice = {};
  const size_t colon = message.find(": ");
  if (colon != std::string_view::npos && colon < 40) {
    choice->function = message.substr(0, colon);
    message.remove_prefix(colon + 2);
    if (const size_t bracket = choice->function.find(" ["); bracket != std::string_view::npos) {
      choice->variant = choice->function.substr(bracket + 2);
      if (choice->variant.ends_with("]")) choice->variant.remove_suffix(1);
      choice->function = choice->function.substr(0, bracket);
    }
  }
  if (!TakeNumber(message, &choice->bytes) || !TakeLiteral(message, " Bytes -> ")) return false;
  if (TakeLiteral(message, "Algo ")) {
    choice->algorithm = AlgorithmName(TakeWord(message));
    if (!TakeLiteral(message, " proto ")) return false;
    choice->protocol = ProtocolName(TakeWord(message));
    if (TakeLiteral(message, " channel{Lo..Hi}={"))
      return TakeNumber(message, &choice->first_channel) && TakeLiteral(message, "..") &&
             TakeNumber(message, &choice->last_channel);
    if (TakeLiteral(message, " time ")) TakeDouble(message, &choice->time_us);
    return true;
  }
  TakeLiteral(message, "Kernel ");
  choice->algorithm = TakeWord(message);
  return !choice->variant.empty();
}

std::string_view AlgorithmName(std::string_view printed) {
  static constexpr std::string_view kNames[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                                "NVLS_TREE", "PAT"};
  return NumberedName(printed, kNames);
}

std::string_view ProtocolName(std::string_view printed) {
  static constexpr std::string_view kNames[] = {"LL", "LL128", "SIMPLE"};
  return NumberedName(printed, kNames);
}

}  // namespace tacet
