// SPDX-License-Identifier: Apache-2.0
#include "report/profile/profile_gpus.h"

#include <algorithm>

#include "analysis/network/shared_gpu.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

size_t SharingRanks(const ProfileReport& profile) {
  size_t ranks = 0;
  for (const std::vector<Rank>& one : profile.shared_gpus) ranks += one.size();
  return ranks;
}

size_t RanksOf(const ProfileReport& profile) {
  return std::max(
      {profile.ranks.size(), SharingRanks(profile), static_cast<size_t>(std::max<int64_t>(1, profile.world_size))});
}

// "All 4 ranks share one GPU and take turns on it: ..."
std::string SharingWords(const ProfileReport& profile) {
  const size_t sharing = SharingRanks(profile), all = RanksOf(profile), gpus = profile.shared_gpus.size();
  if (sharing == 0) return "";
  const std::string who = sharing < all ? std::to_string(sharing) + " of " + std::to_string(all) + " ranks"
                          : all == 2    ? "Both ranks"
                                        : "All " + std::to_string(all) + " ranks";
  return who + " share " +
         (gpus == 1 ? "one GPU and take turns on it" : std::to_string(gpus) + " GPUs and take turns on them") +
         ": their times are not those of ranks with a GPU each";
}

std::string SplitWords(const ProfileReport& profile) {
  if (profile.split_into == 0) return "";
  return "NCCL_HOSTID makes NCCL treat host " + profile.split_host + " as " + std::to_string(profile.split_into) +
         " hosts and use the network between them";
}

// The time in which a GPU idles and what the words for whose time it is.
struct IdleTime {
  TimeBudget mean;
  std::string whose;
};

// Behind an overloaded stage the other ranks wait whatever their GPUs do: the time of that stage counts. What another
// straggler's GPU idles longer is in the cost of the straggler already: that of the ranks that keep pace counts.
IdleTime IdleThatCounts(const ProfileReport& profile) {
  IdleTime out{profile.mean, ""};
  const std::vector<Straggler>& late = profile.stragglers.stragglers;
  if (late.empty()) return out;
  const bool stage = late.front().origin == StragglerOrigin::stage;
  std::vector<Rank> named;
  int64_t ranks = 0, host_wait = 0, launch = 0, data_wait = 0, copies = 0;
  for (const Straggler& one : late) named.push_back(one.rank);
  std::sort(named.begin(), named.end());
  for (const ProfileRank& one : profile.budgets) {
    if (std::binary_search(named.begin(), named.end(), one.rank) != stage) continue;
    ++ranks;
    host_wait += one.mean.host_wait_ns;
    launch += one.mean.launch_ns;
    data_wait += one.mean.data_wait_ns;
    copies += one.mean.copies_ns;
  }
  if (ranks == 0) return out;
  if (stage) {
    out.mean.host_wait_ns = host_wait / ranks;
    out.mean.launch_ns = launch / ranks;
    out.mean.data_wait_ns = data_wait / ranks;
    out.mean.copies_ns = copies / ranks;
    out.whose = " (on " + RankWords(named) + ", for which the others wait)";
    return out;
  }
  out.mean.host_wait_ns = std::min(out.mean.host_wait_ns, host_wait / ranks);
  out.mean.launch_ns = std::min(out.mean.launch_ns, launch / ranks);
  out.mean.data_wait_ns = std::min(out.mean.data_wait_ns, data_wait / ranks);
  out.whose = " (measured on the other ranks; the gain appears only once " + RankWords(named) +
              (named.size() == 1 ? " keeps" : " keep") + " pace)";
  return out;
}

constexpr std::string_view kOwnGpu = "Give each rank its own GPU";

}  // namespace

void FillGpus(const Incident& incident, ProfileReport& profile) {
  profile.shared_gpus = FindSharedGpus(incident);
  profile.split_into = HostSplitters(incident).size();
  if (profile.split_into > 0) profile.split_host = *HostsSeen(incident).begin();
  const std::string shared = SharingWords(profile), split = SplitWords(profile);
  profile.setup = shared + (shared.empty() || split.empty() ? "" : ". ") + split;
}

double RanksPerGpu(const ProfileReport& profile) {
  const auto ranks = static_cast<double>(RanksOf(profile));
  return ranks / (ranks - static_cast<double>(SharingRanks(profile) - profile.shared_gpus.size()));
}

std::string TransportAdvice(const ProfileReport& profile) {
  const bool shared = !profile.shared_gpus.empty();
  if (profile.split_into > 0)
    return shared
               ? std::string(kOwnGpu) + " and unset NCCL_HOSTID"
               : "Unset NCCL_HOSTID, so that NCCL uses NVLink, PCIe or shared memory within host " + profile.split_host;
  if (shared) return std::string(kOwnGpu);
  return "Use a faster transport than TCP (NVLink or shared memory within a host, InfiniBand or RoCE between hosts)";
}

void AddIdleAdvice(const ProfileReport& profile, std::vector<Advice>& out) {
  const auto step = static_cast<double>(std::max<int64_t>(1, profile.mean.total_ns()));
  const auto [mean, whose] = IdleThatCounts(profile);
  const auto add = [&](std::string what, std::string why, int64_t ns) {
    out.push_back({std::move(what), std::move(why), static_cast<double>(ns) / step, true});
  };
  add("Load data ahead (more DataLoader workers, prefetch_factor, pin_memory)",
      "the GPU is idle while the host waits for a batch" + whose, mean.data_wait_ns);
  add("Launch work earlier (torch.compile, CUDA graphs, no .item() or print in the step)",
      "the GPU is idle while the host prepares the next launch" + whose, mean.host_wait_ns);
  if (profile.shared_gpus.empty())
    add("Reduce launch latency (CUDA graphs, fewer and larger kernels, no other process on the GPU)",
        "the GPU was idle although work had been issued: launch latency, waits between streams" + whose,
        mean.launch_ns);
  else if (std::none_of(out.begin(), out.end(), [](const Advice& one) { return one.what.starts_with(kOwnGpu); }))
    add(std::string(kOwnGpu), "kernels were launched and had not started: ranks that share a GPU take turns" + whose,
        mean.launch_ns);
  add("Copy from pinned memory with non_blocking=True", "during this time only copies run" + whose, mean.copies_ns);
}

}  // namespace tacet
