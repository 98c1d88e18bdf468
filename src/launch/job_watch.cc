// SPDX-License-Identifier: Apache-2.0
#include "launch/job_watch.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "base/clock.h"
#include "launch/run_folder.h"

namespace tacet {
namespace {

constexpr int64_t kTickNs = 1'000'000'000;
constexpr const char* kLastLook = "/last-look";

}  // namespace

JobWatch::JobWatch(JobWatchOptions options, const JobActivity& activity)
    : options_(std::move(options)), activity_(activity), looker_(options_.looker), judge_(options_.patience) {
  thread_ = std::thread([this] { Work(); });
}

JobWatch::~JobWatch() { Stop(); }

void JobWatch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool JobWatch::Wait(int64_t ns) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::nanoseconds(ns), [&] { return ending_; });
}

// No output for a while; or output, but no rank has used its CPU for as long: somebody may print while all hang.
bool JobWatch::IsSuspicious(int64_t now_ns) {
  if (now_ns - activity_.last_output_ns > options_.patience.run_quiet_ns) return true;
  if (cpu_looked_ns_ >= 0 && now_ns - cpu_looked_ns_ < options_.patience.run_look_ns) return false;
  const auto& ranks = looker_.Look(WallNs(), false);
  int64_t cpu_ns = 0;
  for (const WatchedRank& rank : ranks) cpu_ns += rank.look.cpu_ns;
  const double allowed = static_cast<double>(options_.patience.run_busy_percent) / 100 *
                         static_cast<double>(now_ns - cpu_looked_ns_) *
                         static_cast<double>(std::max<size_t>(ranks.size(), 1));
  const bool idle = cpu_looked_ns_ >= 0 && !ranks.empty() && static_cast<double>(cpu_ns - cpu_seen_ns_) < allowed;
  if (!idle) idle_since_ns_ = now_ns;
  cpu_looked_ns_ = now_ns;
  cpu_seen_ns_ = cpu_ns;
  return idle && now_ns - idle_since_ns_ > options_.patience.run_quiet_ns;
}

void JobWatch::Work() {
  const Patience& patience = options_.patience;
  int64_t pause_ns = patience.run_look_ns, looked_ns = -1;
  bool told = false;
  while (Wait(std::min(kTickNs, patience.run_look_ns))) {
    const int64_t now_ns = MonotonicNs();
    if (WatchdogSpokeFirst(told)) {
      told = true;
      looker_.Look(WallNs(), true);
      HandleHang({});
      continue;
    }
    if (!IsSuspicious(now_ns)) {
      pause_ns = patience.run_look_ns;
      told = false;
      continue;
    }
    if (looked_ns >= 0 && now_ns - looked_ns < pause_ns) continue;
    looked_ns = now_ns;
    looker_.Look(WallNs(), true);
    const auto still = judge_.Look(looker_.looks(), MonotonicNs());
    // Looks are cheap, but a job that is quiet for hours needs few of them.
    pause_ns = judge_.moved() ? std::min(pause_ns * 2, patience.run_most_look_ns) : patience.run_look_ns;
    if (judge_.moved()) told = false;
    if (StandsWhereItStood(looked_ns)) KeepLook();
    if (!still || told) continue;
    told = HandleHang(*still);
  }
}

// PyTorch gave up waiting where this watch saw somebody run: a loop without end, or a step longer than the timeout. Its
// processes end soon, so that whatever can be captured is captured now.
bool JobWatch::WatchdogSpokeFirst(bool told) {
  if (watchdog_heard_ || !activity_.watchdog_spoke) return false;
  watchdog_heard_ = true;
  return !told;
}

// Some wait, and those they wait for are busy in the same functions as before: an evaluation, or a loop without end.
// Nobody can tell which, so nothing is said; but PyTorch's own timeout may end such a job, and then this is what was
// seen last.
bool JobWatch::StandsWhereItStood(int64_t now_ns) {
  std::map<int64_t, uint64_t> places;
  bool waits = false, elsewhere = false;
  for (const RankLook& look : looker_.looks()) {
    if (look.gone) return false;
    if (look.doing == RankLook::Doing::unknown) continue;
    places[look.pid] = look.place;
    (look.doing == RankLook::Doing::user_code ? elsewhere : waits) = true;
  }
  if (places != places_ || !waits || !elsewhere) places_since_ns_ = now_ns;
  places_ = std::move(places);
  return waits && elsewhere && now_ns > places_since_ns_;
}

void JobWatch::KeepLook() {
  const std::string folder = options_.capture.folder + kLastLook;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const WatchedRank& rank : looker_.ranks()) {
    const std::string file = looker_.StackFileOf(rank);
    const std::string text = file.empty() ? "" : ReadSmallFile(file, 4 << 20);
    if (!text.empty()) WriteWholeFile(folder + "/" + std::filesystem::path(file).filename().string(), text);
  }
  WriteWholeFile(folder + "/watch.json", DescribeWatch(looker_.ranks(), std::nullopt, HostName(), WallNs()));
  look_kept_ns_ = MonotonicNs();
}

bool JobWatch::HandleHang(const StillVerdict& still) {
  SeenHang& hang = hangs_.emplace_back();
  hang.wall_ns = WallNs();
  hang.still_s = static_cast<double>(still.still_ns) / 1e9;
  hang.folder = "hang-" + std::to_string(hangs_.size());
  CapturePlan plan = options_.capture;
  plan.folder += "/" + hang.folder;
  plan.still = still;
  hang.missing = Capture(looker_, plan);
  // The capture has looked again. Whoever got on meanwhile was slow, not stuck: a first step, a busy machine.
  if (still.still_ns > 0 && !activity_.watchdog_spoke && judge_.HaveGotOn(looker_.looks())) {
    std::error_code error;
    std::filesystem::remove_all(plan.folder, error);
    hangs_.pop_back();
    return false;
  }
  if (options_.on_hang) options_.on_hang(hang);
  return true;
}

}  // namespace tacet
