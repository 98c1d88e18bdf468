// SPDX-License-Identifier: Apache-2.0
#include "live/server/agent_poll.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/clock.h"

namespace tacet {
namespace {

constexpr int64_t kLongestPauseNs = 10'000'000'000;

}  // namespace

AgentPoll::AgentPoll(std::vector<HttpAddress> agents, AgentPollOptions options)
    : options_(std::move(options)), client_(options_.credentials) {
  SetAgents(agents);
  const int patient = std::max(1, options_.workers / 4);
  for (int i = 0; i < std::max(2, options_.workers); ++i)
    workers_.emplace_back([this, is_patient = i < patient] { Work(is_patient); });
}

AgentPoll::~AgentPoll() {
  {
    const std::lock_guard lock(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  client_.Cancel();
  for (std::thread& worker : workers_) worker.join();
}

void AgentPoll::SetAgents(const std::vector<HttpAddress>& agents) {
  const std::lock_guard lock(lock_);
  std::map<std::string, std::shared_ptr<Slot>> known;
  for (auto& slot : slots_) {
    slot->gone = true;
    known.emplace(Show(slot->view.address), slot);
  }
  slots_.clear();
  const int64_t now = MonotonicNs();
  for (size_t i = 0; i < agents.size(); ++i) {
    auto& slot = known[Show(agents[i])];
    if (!slot) {
      slot = std::make_shared<Slot>();
      slot->view.address = agents[i];
      // Spread over an interval, so that they do not all answer in the same moment for ever.
      const auto share =
          static_cast<int64_t>(i) * options_.interval_ms * 1'000'000 / static_cast<int64_t>(agents.size());
      prompt_.emplace(now + share, slot);
    }
    slot->gone = false;
    slots_.push_back(slot);
  }
  const auto is_gone = [](const Due& due) { return due.second->gone; };
  std::erase_if(prompt_, is_gone);
  std::erase_if(failing_, is_gone);
  wake_.notify_all();
}

std::vector<AgentView> AgentPoll::Views() const {
  const std::lock_guard lock(lock_);
  std::vector<AgentView> views;
  for (const auto& slot : slots_) views.push_back(slot->view);
  return views;
}

void AgentPoll::Work(bool patient) {
  std::unique_lock held(lock_);
  std::set<Due>& queue = patient ? failing_ : prompt_;
  while (!stop_) {
    const int64_t now = MonotonicNs();
    if (queue.empty() || queue.begin()->first > now) {
      const int64_t wait = queue.empty() ? 100'000'000 : std::min<int64_t>(queue.begin()->first - now, 100'000'000);
      wake_.wait_for(held, std::chrono::nanoseconds(wait));
      continue;
    }
    const auto slot = queue.begin()->second;
    queue.erase(queue.begin());
    held.unlock();
    auto body = client_.Get(slot->view.address, "/api/v1/state?brief=1", options_.limits);
    auto state = body ? ReadState(*body) : Result<AgentState>(body.error());
    held.lock();
    AgentView& view = slot->view;
    int64_t pause = options_.interval_ms * 1'000'000;
    if (state) {
      view.state = std::make_shared<const AgentState>(std::move(*state));
      view.answered_ns = MonotonicNs();
      view.failures = 0;
      view.error.clear();
    } else {
      const Error& error = state.error();
      view.error = error.message + (error.hint.empty() ? "" : "; " + error.hint);
      pause = std::min(kLongestPauseNs, pause << std::min(view.failures++, 10));
    }
    // From when it was due, not from when it answered: else slow answers stretch the interval.
    if (!slot->gone) (state ? prompt_ : failing_).emplace(std::max(now + pause, MonotonicNs()), slot);
  }
}

}  // namespace tacet
