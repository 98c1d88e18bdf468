// SPDX-License-Identifier: Apache-2.0
#include "live/agent/ras_watch.h"

#include <chrono>
#include <utility>

#include "http/peer_identity.h"

namespace tacet {
namespace {

constexpr auto kPause = std::chrono::seconds(30);
constexpr int64_t kLimitMs = 8000;  // RAS itself gives its peers five seconds

}  // namespace

RasWatch::RasWatch(HttpAddress address) : address_(std::move(address)), thread_([this] { Run(); }) {}

RasWatch::~RasWatch() {
  {
    const std::lock_guard lock(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RasWatch::Update(bool jobs_run, bool hang_suspected) {
  const std::lock_guard lock(lock_);
  if (hang_suspected && !suspected_) ask_now_ = true;
  suspected_ = hang_suspected;
  jobs_run_ = jobs_run;
  if (ask_now_) wake_.notify_all();
}

std::shared_ptr<const RasAnswer> RasWatch::latest() const {
  const std::lock_guard lock(lock_);
  return latest_;
}

void RasWatch::Run() {
  std::unique_lock held(lock_);
  while (!stop_) {
    const auto next = std::chrono::steady_clock::now() + kPause;
    wake_.wait_until(held, next, [&] { return stop_ || ask_now_; });
    if (stop_ || (!ask_now_ && !jobs_run_)) continue;
    ask_now_ = false;
    held.unlock();
    // Before and after: the port may change hands in between.
    const bool here = IsLoopbackName(address_.host);
    const int64_t owner = here ? OwnerOfListener(address_.port) : -1;
    auto answer = AskRas(address_, kLimitMs);
    auto told = std::make_shared<RasAnswer>();
    told->uid = owner;
    if (here && (owner < 0 || OwnerOfListener(address_.port) != owner))
      told->error = "nothing, or several users, listen at " + Show(address_);
    else if (answer)
      told->text = std::move(*answer);
    else
      told->error = answer.error().message;
    told->wall_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    held.lock();
    latest_ = std::move(told);
  }
}

}  // namespace tacet
