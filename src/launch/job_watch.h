// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launch/job_process.h"
#include "launch/rank_looker.h"
#include "launch/run_manifest.h"
#include "launch/still_judge.h"

namespace tacet {

struct JobWatchOptions {
  LookerOptions looker;
  Patience patience;
  CapturePlan capture;  // `folder` is the run folder here; each hang gets one of its own below it
  // Called with the hang's folder after everything is captured, from the watch's thread.
  std::function<void(SeenHang& hang)> on_hang;
};

// Follows a job from a thread of its own: looks when it is quiet, and captures when the judge says that it hangs. One
// hang is told once; the watch goes on when the job does.
class JobWatch {
 public:
  JobWatch(JobWatchOptions options, const JobActivity& activity);
  ~JobWatch();
  // Ends the thread; a capture that is under way is finished first.
  void Stop();
  const std::vector<SeenHang>& hangs() const { return hangs_; }  // after Stop
  int64_t look_kept_ns() const { return look_kept_ns_; }         // after Stop; -1 where none is kept

 private:
  void Work();
  bool Wait(int64_t ns);  // false: it is time to end
  bool IsSuspicious(int64_t now_ns);
  bool HandleHang(const StillVerdict& still);  // false: it moved on while it was captured
  bool WatchdogSpokeFirst(bool told);
  bool StandsWhereItStood(int64_t now_ns);
  void KeepLook();

  JobWatchOptions options_;
  const JobActivity& activity_;
  RankLooker looker_;
  StillJudge judge_;
  int64_t idle_since_ns_ = -1, cpu_seen_ns_ = 0, cpu_looked_ns_ = -1;
  std::map<int64_t, uint64_t> places_;  // by pid, at the last look
  int64_t places_since_ns_ = -1, look_kept_ns_ = -1;
  bool watchdog_heard_ = false;
  std::vector<SeenHang> hangs_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tacet
