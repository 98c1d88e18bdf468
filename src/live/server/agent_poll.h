// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/http_client.h"
#include "live/server/agent_list.h"
#include "live/state_json.h"

namespace tacet {

struct AgentPollOptions {
  int64_t interval_ms = 1000;
  int workers = 32;
  HttpLimits limits{.most_bytes = uint64_t{8} << 20};
  HttpCredentials credentials;
};

// What is known of one agent.
struct AgentView {
  HttpAddress address;
  std::shared_ptr<const AgentState> state;  // null before the first answer
  int64_t answered_ns = -1;                 // monotonic, when that came
  int failures = 0;                         // in a row
  std::string error;                        // of the latest failure
};

// Asks many agents for their brief state, each about once an interval. A slow or vanished agent delays nobody: those
// that failed last time are asked by a few workers of their own, more and more seldom, up to every 10 s.
class AgentPoll {
 public:
  AgentPoll(std::vector<HttpAddress> agents, AgentPollOptions options);
  ~AgentPoll();
  void SetAgents(const std::vector<HttpAddress>& agents);  // those no longer named are forgotten
  std::vector<AgentView> Views() const;
  HttpClient& client() { return client_; }

 private:
  struct Slot {
    AgentView view;
    bool gone = false;  // no longer named
  };
  using Due = std::pair<int64_t, std::shared_ptr<Slot>>;  // when, whom

  void Work(bool patient);

  AgentPollOptions options_;
  HttpClient client_;
  mutable std::mutex lock_;
  std::condition_variable wake_;
  std::set<Due> prompt_, failing_;
  std::vector<std::shared_ptr<Slot>> slots_;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tacet
