// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "http/http_server.h"
#include "http/web_access.h"
#include "live/agent/agent_complaints.h"
#include "live/agent/box_keeping.h"
#include "live/agent/box_watch.h"
#include "live/agent/normal_durations.h"
#include "live/agent/operation_metrics.h"
#include "live/agent/ras_watch.h"
#include "live/history/history_sink.h"
#include "live/state_json.h"

namespace tacet {

struct AgentOptions {
  BoxWatchOptions boxes;
  HttpAddress listen{"127.0.0.1", 9560};
  std::string unix_socket;  // also answers there; empty: not
  WebAccessOptions access;
  size_t most_connections = 512;
  std::string host;            // empty: as the kernel says
  int64_t interval_ms = 1000;  // between looks
  HangRule hang_rule;
  std::optional<HistoryOptions> history;  // where finished operations are kept
  KeepRule keep_rule;
  bool clean_up = true;  // remove boxes of processes that ended
  HttpAddress ras{"localhost", 28028};
  bool ask_ras = true;
  std::function<void(const std::string&)> say;  // what an operator should know, once each; may be empty
};

// One a node: watches the boxes below a folder and answers what it sees.
class Agent {
 public:
  static Result<std::unique_ptr<Agent>> Start(AgentOptions options);
  ~Agent();
  int port() const { return server_->port(); }
  bool uses_tls() const { return access_->uses_tls(); }
  std::shared_ptr<const AgentState> state() const;

 private:
  explicit Agent(AgentOptions options);
  void Loop();
  void LookOnce();
  void JudgeHangs(AgentState& state);
  void CleanUp(const HostState& state);
  HttpReply Answer(const HttpRequest& request);
  HttpReply AnswerHealth(const Viewer& viewer) const;
  HttpReply AnswerRas(const HttpRequest& request) const;
  HttpReply AnswerMetrics(const Viewer& viewer);
  HttpReply AnswerBoxes(const Viewer& viewer) const;
  HttpReply AnswerState(const HttpRequest& request) const;
  HttpReply AnswerBox(const std::string& name, const HttpRequest& request);

  AgentOptions options_;
  std::mutex watch_lock_;  // the watch and all that the loop changes
  BoxWatch watch_;
  OperationMetrics operations_;
  NormalDurations normal_;
  HangWatch hangs_;
  std::unique_ptr<HistorySink> history_;  // null: nobody asked for it
  ComplaintLog complaint_log_;
  std::set<std::string> marked_;  // boxes marked as evidence since the start
  std::unique_ptr<RasWatch> ras_;
  uint64_t removed_ = 0;
  uint64_t looks_ = 0, scrapes_ = 0;
  double look_seconds_ = 0, scrape_seconds_ = 0;  // all together
  mutable std::mutex state_lock_;
  std::shared_ptr<const AgentState> state_;
  std::vector<std::string> complaints_;
  std::atomic<int64_t> looked_monotonic_ns_{0};
  std::atomic<bool> stop_{false};
  std::unique_ptr<WebAccess> access_;
  std::unique_ptr<HttpServer> server_;
  std::thread loop_;
};

}  // namespace tacet
