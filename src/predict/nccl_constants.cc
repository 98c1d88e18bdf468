// SPDX-License-Identifier: Apache-2.0
// The newest figures first; each step below takes one release's changes back.
#include "predict/nccl_constants.h"

#include <initializer_list>

#include "predict/nccl_indices.h"

namespace tacet {
namespace {

constexpr int kAmpere = 1, kHopper = 2, kBlackwell = 3;

template <typename T>
void Set(T (&row)[3], double a, double b, double c) {
  row[0] = static_cast<T>(a);
  row[1] = static_cast<T>(b);
  row[2] = static_cast<T>(c);
}

NcclConstants Newest() {  // 2.30.3 and later
  NcclConstants c;
  Set(c.base_latency[kTree], 6.8, 14, 8.4);
  Set(c.base_latency[kRing], 6.6, 14, 8.4);
  Set(c.base_latency[kPat], 8, 8, 8);
  Set(c.hw_latency[kNvlink][kTree], .6, 1.25, 4);
  Set(c.hw_latency[kNvlink][kRing], .6, 1.9, 3.4);
  Set(c.hw_latency[kNvlink][kDirect], 0, 0, 3.7);
  Set(c.hw_latency[kNvlink][kChain], 0, 0, 2.8);
  Set(c.hw_latency[kNvlink][kNvls], 0, 0, 25);
  Set(c.hw_latency[kNvlink][kNvlsTree], 0, 0, 25);
  Set(c.hw_latency[kNvlink][kPat], 0, 0, 4);
  Set(c.hw_latency[kPci][kTree], 1, 1.9, 4);
  Set(c.hw_latency[kPci][kRing], 1, 2.5, 5.7);
  Set(c.hw_latency[kPci][kDirect], 0, 0, 3.7);
  Set(c.hw_latency[kPci][kChain], 0, 0, 2.8);
  Set(c.hw_latency[kPci][kPat], 0, 0, 4);
  Set(c.hw_latency[kNet][kTree], 5, 8.5, 14);
  Set(c.hw_latency[kNet][kRing], 2.7, 4, 14);
  Set(c.hw_latency[kNet][kDirect], 0, 0, 31);
  Set(c.hw_latency[kNet][kChain], 0, 0, 30);
  Set(c.hw_latency[kNet][kNvls], 0, 0, 18);
  Set(c.hw_latency[kNet][kNvlsTree], 0, 0, 20.9);
  Set(c.hw_latency[kNet][kPat], 0, 0, 14);
  Set(c.ll_max[0], 39, 39, 20.4);
  Set(c.ll_max[kAmpere], 87.7, 22.5, 19);
  Set(c.ll_max[kHopper], 141, 45, 35);
  Set(c.ll_max[kBlackwell], 282, 90, 70);
  Set(c.ring_ll128_per_channel[0], 20, 20, 20);
  Set(c.ring_ll128_per_channel[kAmpere], 20, 20, 20);
  Set(c.ring_ll128_per_channel[kHopper], 36.7, 36.7, 36.7);
  Set(c.ring_ll128_per_channel[kBlackwell], 40, 40, 40);
  Set(c.tree_ll128_per_channel[0], 20, 20, 20);
  Set(c.tree_ll128_per_channel[kAmpere], 20, 20, 20);
  Set(c.tree_ll128_per_channel[kHopper], 36.7, 36.7, 29);
  Set(c.tree_ll128_per_channel[kBlackwell], 55.6, 31.67, 20);
  Set(c.tree_per_channel[0], 26.5, 18.5, 10);
  Set(c.tree_per_channel[kAmpere], 24, 23.6, 17.8);
  Set(c.tree_per_channel[kHopper], 38.7, 41.4, 36);
  Set(c.tree_per_channel[kBlackwell], 70, 42.8, 24);
  Set(c.nvls_tree_per_channel[0], 26.5, 18.5, 10);
  Set(c.nvls_tree_per_channel[kAmpere], 24, 23.6, 17.8);
  Set(c.nvls_tree_per_channel[kHopper], 0, 57.7, 45.5);
  Set(c.nvls_tree_per_channel[kBlackwell], 0, 96, 80);
  return c;
}

void TakeBackBlackwell(const NcclRelease& release, NcclConstants& c) {
  if (release.Before(30, 3)) c.nvls_tree_per_channel[kBlackwell][2] = 43.8;
  if (release.Before(29, 7)) Set(c.ring_ll128_per_channel[kBlackwell], 34.5, 34.6, 34.5);
  if (release.Before(29, 2)) Set(c.ring_ll128_per_channel[kBlackwell], 2 * 36.7, 34.6, 2 * 36.7);
  if (release.Before(28, 9)) {
    c.hw_latency[kNet][kNvlsTree][kSimple] = 14;
    c.nvls_tree_per_channel[kBlackwell][2] = 43.1;
  }
  if (release.Before(28, 7)) c.ring_ll128_per_channel[kBlackwell][1] = 2 * 36.7;
  if (release.Before(28, 3)) {
    for (auto& hardware : c.hw_latency) Set(hardware[kPat], 0, 0, 0);
    Set(c.tree_ll128_per_channel[kBlackwell], 2 * 36.7, 2 * 36.7, 2 * 29.0);
    Set(c.tree_per_channel[kBlackwell], 2 * 38.7, 2 * 41.4, 2 * 36.0);
  }
}

// 2.19 to 2.22 put the cost of a chunk into the latency of Tree with Simple.
void TakeBackTreeLatency(const NcclRelease& release, NcclConstants& c) {
  if (release.AtLeast(23)) return;
  c.base_latency[kTree][kSimple] = 0;
  for (auto& hardware : c.hw_latency) hardware[kTree][kSimple] = 28;
  if (release.Before(21)) {
    c.hw_latency[kNvlink][kNvls][kSimple] = c.hw_latency[kNvlink][kNvlsTree][kSimple] = 23;
    Set(c.ll_max[kHopper], 87.7, 22.5, 19);
  }
}

void TakeBackCollNet(const NcclRelease& release, NcclConstants& c) {
  if (release.AtLeast(19)) return;
  for (const int algorithm : {kDirect, kChain}) Set(c.base_latency[algorithm], 6.8, 14, 0);
  for (const int algorithm : {kNvls, kNvlsTree}) {
    Set(c.base_latency[algorithm], 0, 0, 23);
    c.hw_latency[kNvlink][algorithm][kSimple] = 0;
  }
  c.hw_latency[kNet][kNvlsTree][kSimple] = 19;
  c.hw_latency[kNvlink][kTree][kSimple] = 4;
  c.hw_latency[kPci][kTree][kSimple] = 6;
  c.hw_latency[kNet][kTree][kSimple] = 14;
  c.hw_latency[kNvlink][kDirect][kSimple] = c.hw_latency[kPci][kDirect][kSimple] = 8;
  c.hw_latency[kNvlink][kChain][kSimple] = 4.75;
  c.hw_latency[kPci][kChain][kSimple] = 8;
  c.hw_latency[kNet][kDirect][kSimple] = 10.7f;
  c.hw_latency[kNet][kChain][kSimple] = 14;
  if (release.AtLeast(18, 3)) return;
  for (auto& hardware : c.hw_latency) hardware[kTree][kSimple] = 28;
  c.tree_ll128_per_channel[kHopper][2] = 36.7;
  c.tree_per_channel[kHopper][2] = 33;
}

void TakeBackBefore18(const NcclRelease& release, NcclConstants& c) {
  if (release.AtLeast(18)) return;
  Set(c.base_latency[kTree], 4.4, 4.4, 0);
  Set(c.base_latency[kRing], 3.6, 10, 8.4);
  for (const int algorithm : {kDirect, kChain}) {
    Set(c.base_latency[algorithm], 4.4, 4.4, 0);
    c.hw_latency[kNvlink][algorithm][kSimple] = 8;
    c.hw_latency[kNet][algorithm][kSimple] = 10.7f;
  }
  Set(c.base_latency[kNvls], 0, 0, 40);
  c.hw_latency[kNet][kNvls][kSimple] = 0;
  c.hw_latency[kNvlink][kTree][kLl] = .52f;
  c.hw_latency[kNvlink][kRing][kLl] = .47f;
  c.hw_latency[kNet][kRing][kSimple] = 9.6f;
  if (release.AtLeast(17)) return;
  for (auto* table : {&c.ring_ll128_per_channel, &c.tree_ll128_per_channel}) Set((*table)[kHopper], 20, 20, 20);
  Set(c.tree_per_channel[kHopper], 24, 23.6, 17.8);
  if (release.AtLeast(14)) return;
  c.hw_latency[kNet][kRing][kSimple] = 28;
  c.hw_latency[kNvlink][kDirect][kLl] = .5f;
  c.hw_latency[kNvlink][kDirect][kLl128] = 1.2f;
  c.hw_latency[kPci][kDirect][kLl] = 1;
  c.hw_latency[kPci][kDirect][kLl128] = 1.9f;
  c.hw_latency[kNet][kDirect][kLl] = c.hw_latency[kNet][kDirect][kLl128] = 5;
}

}  // namespace

NcclConstants NcclConstantsOf(const NcclRelease& release) {
  NcclConstants constants = Newest();
  TakeBackBlackwell(release, constants);
  TakeBackTreeLatency(release, constants);
  TakeBackCollNet(release, constants);
  TakeBackBefore18(release, constants);
  return constants;
}

NcclGeneration NcclGenerationOf(const NcclRelease& release, int min_capability, int max_capability) {
  if (release.Before(17)) {  // only GPUs of one kind had a row of their own
    if (min_capability == 80 && max_capability == 80) return NcclGeneration::ampere;
    const bool hopper = release.AtLeast(15) && min_capability == 90 && max_capability == 90;
    return hopper ? NcclGeneration::hopper : NcclGeneration::volta;
  }
  if (min_capability >= 100 && release.AtLeast(25)) return NcclGeneration::blackwell;
  if (min_capability >= 90) return NcclGeneration::hopper;
  return min_capability >= 80 ? NcclGeneration::ampere : NcclGeneration::volta;
}

}  // namespace tacet
