// SPDX-License-Identifier: Apache-2.0
#include "live/agent/normal_durations.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "live/agent/operation_metrics.h"

namespace tacet {

void DurationHistory::Add(int64_t ns) {
  const double us = std::max(1.0, static_cast<double>(ns) / 1000);
  const auto place = std::min(counts_.size() - 1, static_cast<size_t>(std::log2(us) * 4));
  ++counts_[place];
  if (++total_ < kFadeAt) return;
  total_ = 0;
  for (uint32_t& count : counts_) total_ += count /= 2;
}

int64_t DurationHistory::NormalNs() const {
  if (total_ < kEnough) return -1;
  uint32_t left_out = std::max<uint32_t>(2, total_ / 100);
  for (size_t i = counts_.size(); i-- > 0;) {
    if (counts_[i] > left_out) return static_cast<int64_t>(1000 * std::exp2(static_cast<double>(i + 1) / 4));
    left_out -= counts_[i];
  }
  return -1;
}

void NormalDurations::Add(const FinishedOperation& finished) {
  if (finished.in_flight_ns < 0 || finished.comm == nullptr) return;
  const Key key(finished.box->name, finished.comm->id, finished.kind, SizeClassOf(finished.bytes));
  auto found = histories_.find(key);
  if (found == histories_.end()) {
    size_t& count = counts_[finished.box->uid];
    if (histories_.size() >= kMostHistories || count >= kMostOfUser) return;
    ++count;
    found = histories_.emplace(key, DurationHistory()).first;
  }
  found->second.Add(finished.in_flight_ns);
}

int64_t NormalDurations::NormalNs(const std::string& box, const OperationState& op) const {
  const auto found = histories_.find({box, op.comm, op.kind, SizeClassOf(op.bytes)});
  return found == histories_.end() ? -1 : found->second.NormalNs();
}

void NormalDurations::ForgetBoxesNotIn(const HostState& state) {
  std::map<std::string, int64_t> owners;
  for (const BoxState& box : state.boxes) owners.emplace(box.name, box.uid);
  std::erase_if(histories_, [&](const auto& entry) { return !owners.contains(std::get<0>(entry.first)); });
  counts_.clear();
  for (const auto& [key, history] : histories_) ++counts_[owners[std::get<0>(key)]];
}

}  // namespace tacet
