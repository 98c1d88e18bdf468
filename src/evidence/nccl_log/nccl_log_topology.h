// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tacet {

// Which rings, trees and algorithms NCCL built and chose; nccl_log_channels.h gives them to their communicators. Group
// ranks throughout; -1 is nobody.

struct NcclRing {
  int32_t channel = -1;
  std::vector<int32_t> ranks;  // previous, this rank, next; or a whole ring, as documents draw it
};
struct NcclTree {
  int32_t channel = -1;
  int32_t down[3] = {-1, -1, -1};
  int32_t rank = -1, up = -1;
};
struct NcclChannelOrder {
  int32_t channel = -1, channels = -1;
  std::vector<int32_t> ranks;
  bool cut = false;  // NCCL ends long lists with "..."
};
struct NcclConnected {
  std::string_view what;       // "all rings", "all trees", "NVLS tree"
  int32_t pxn = -1, gdr = -1;  // -1 where not printed
};
struct NcclChoice {
  std::string_view function;  // "AllReduce"; empty before 2.23
  int64_t bytes = -1;
  std::string_view algorithm;  // "RING"; a number before 2.24: see AlgorithmName
  std::string_view protocol;   // "SIMPLE"
  int32_t first_channel = -1, last_channel = -1;
  double time_us = -1;       // NCCL's own expectation; printed by 2.20 to 2.23
  std::string_view variant;  // "Symmetric", "Copy Engine", "Hierarchical CE"
};

bool ParseRing(std::string_view message, NcclRing* ring);
bool ParseTrees(std::string_view message, std::vector<NcclTree>* trees);
bool ParseChannelOrder(std::string_view message, NcclChannelOrder* order);
bool ParseConnected(std::string_view message, NcclConnected* connected);
bool ParseChoice(std::string_view message, NcclChoice* choice);

// "RING" for "1", and for "RING" itself.
std::string_view AlgorithmName(std::string_view printed);
std::string_view ProtocolName(std::string_view printed);

}  // namespace tacet
