// SPDX-License-Identifier: Apache-2.0
#include "rules/words/gpu_load_words.h"

#include <algorithm>
#include <cstdio>

namespace tacet {
namespace {

constexpr float kBusyPercent = 95, kIdlePercent = 5;
// Kernels that compute draw most of a card's power; those that poll for a peer's data draw 15 to 60 % of it. Small
// kernels draw as little: the power shows nothing by itself, and confirms a hang that is told.
constexpr float kWaitingShare = 0.6F;
// Below this share even small kernels are rare.
constexpr float kOddShare = 0.3F;
// A process with a CUDA context has at least this much on the card.
constexpr int32_t kUsedMib = 300;
constexpr size_t kMostRowsCited = 2;

bool IsBusy(const GpuLoad& load) { return load.percent >= kBusyPercent; }

std::string WattWords(const std::vector<const Event*>& rows) {
  float least = 1e9F, most = 0, limit = 0;
  for (const Event* row : rows) {
    const auto& load = row->As<GpuLoad>();
    least = std::min(least, load.watts);
    most = std::max(most, load.watts);
    limit = std::max(limit, load.most_watts);
  }
  char text[64];
  if (most - least < 1)
    std::snprintf(text, sizeof text, "%.0f W of %.0f W", static_cast<double>(most), static_cast<double>(limit));
  else
    std::snprintf(text, sizeof text, "%.0f W to %.0f W of %.0f W", static_cast<double>(least),
                  static_cast<double>(most), static_cast<double>(limit));
  return text;
}

// "GPU 3", "GPUs 3 and 5"
std::string GpuList(const std::vector<const Event*>& rows) {
  std::string list;
  for (size_t i = 0; i < rows.size(); ++i)
    list += (i == 0 ? "" : i + 1 == rows.size() ? " and " : ", ") + std::to_string(rows[i]->As<GpuLoad>().index);
  return (rows.size() == 1 ? "GPU " : "GPUs ") + list;
}

std::string Many(size_t count) { return count == 1 ? "the GPU" : "the " + std::to_string(count) + " GPUs listed"; }

void Cite(const std::vector<const Event*>& rows, GpuLoadView& view) {
  for (const Event* row : rows)
    if (view.cited.size() < kMostRowsCited) view.cited.push_back(row);
}

}  // namespace

std::string GpuLoadWords(const Event& row) {
  const auto& load = row.As<GpuLoad>();
  char percent[32];
  std::snprintf(percent, sizeof percent, ": %.0f %%", static_cast<double>(load.percent));
  return GpuList({&row}) + (load.percent < 0 ? "" : percent) +
         (load.watts > 0 && load.most_watts > 0 ? (load.percent < 0 ? ": " : " at ") + WattWords({&row}) : "");
}

GpuLoadView ReadGpuLoads(const Incident& incident, bool hangs) {
  std::vector<const Event*> all, busy, idle;
  bool powered = true, in_prose = false;
  float share = 0;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::gpu_load) continue;
    const auto& load = event.As<GpuLoad>();
    in_prose |= event.Means(Meaning::in_prose);
    all.push_back(&event);
    if (IsBusy(load)) busy.push_back(&event);
    // Nobody waits for a GPU that the job does not use.
    if (load.percent >= 0 && load.percent <= kIdlePercent && load.memory_mib >= kUsedMib) idle.push_back(&event);
    const bool has_power = load.watts > 0 && load.most_watts > 0;
    if (IsBusy(load) && !has_power) powered = false;
    if (IsBusy(load) && has_power) share = std::max(share, load.watts / load.most_watts);
  }
  GpuLoadView view;
  if (all.empty()) return view;
  const bool low = powered && share <= (hangs ? kWaitingShare : kOddShare);
  if (busy.size() == all.size() && low) {
    view.words = (in_prose ? "the GPUs" : Many(all.size())) + (all.size() == 1 && !in_prose ? " shows" : " show") +
                 " 100 % utilization at " + WattWords(busy) +
                 ": kernels run and compute little, as the kernels of a collective do while they wait for a peer";
    Cite(busy, view);
  } else if (hangs && in_prose && idle.size() == 1 && idle.front()->As<GpuLoad>().index >= 0 && busy.size() == 1) {
    view.idle = GpuList(idle);
    view.words = view.idle +
                 " is idle while the others show 100 % utilization, as they do while they wait inside a "
                 "collective";
    Cite(idle, view);
  } else if (hangs && !idle.empty() && busy.size() > idle.size() && busy.size() + idle.size() == all.size()) {
    view.idle = GpuList(idle);
    view.words = view.idle + (idle.size() == 1 ? " is" : " are") + " idle while the " + std::to_string(busy.size()) +
                 " others show 100 % utilization, as they do while they wait inside a collective";
    Cite(idle, view);
    Cite(busy, view);
  } else if (hangs && idle.size() == all.size()) {
    view.all_idle = true;
    view.words = Many(all.size()) + (all.size() == 1 ? " is" : " are") +
                 " idle: no kernel runs, so the processes wait on the host, not inside a collective on the GPU";
    Cite(idle, view);
  }
  return view;
}

}  // namespace tacet
