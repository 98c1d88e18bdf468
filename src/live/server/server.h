// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json_writer.h"
#include "http/http_server.h"
#include "http/web_access.h"
#include "live/agent/hang_watch.h"
#include "live/server/agent_poll.h"
#include "live/server/job_verdict.h"
#include "live/server/judge_process.h"

namespace tacet {

struct ServerOptions {
  AgentSource agents;
  HttpAddress listen{"127.0.0.1", 9570};
  std::string unix_socket;  // also answers there; empty: not
  WebAccessOptions access;
  size_t most_connections = 512;
  AgentPollOptions poll;
  HangRule hang_rule;
  JudgeOptions judge;
  std::function<void(const std::string&)> say;  // what an operator should know; may be empty
};

// One a cluster: joins what all agents see, tells which job hangs, and runs the rules over its boxes.
class Server {
 public:
  static Result<std::unique_ptr<Server>> Start(ServerOptions options);
  ~Server();
  int port() const { return server_->port(); }
  bool uses_tls() const { return access_->uses_tls(); }
  size_t agents() const { return agent_count_; }

 private:
  // What is said of a job: judged by its boxes, or, while nothing seems wrong, described by what agents see.
  struct Verdict {
    std::shared_ptr<const JudgedReport> judged;
    std::shared_ptr<const Report> running;
    explicit operator bool() const { return judged || running; }
    std::string status() const { return judged ? judged->status : std::string(Name(running->verdict.status)); }
    std::string cause() const { return judged ? judged->cause : running->verdict.cause; }
    std::string headline() const { return judged ? judged->headline : running->verdict.headline; }
  };
  struct Job {
    std::vector<HangSuspicion> suspicions;
    Verdict report;                   // the latest
    int64_t hangs_since_wall_ns = 0;  // 0: it does not
    int64_t judge_again_ns = 0;       // monotonic
    int judged = 0;                   // times in this hang
    bool judging = false;
    int64_t patrol_again_ns = 0;                      // monotonic
    uint64_t patrolled_issued = 0;                    // operations that the busiest rank had issued then
    std::shared_ptr<const JudgedReport> found_twice;  // wrong although nothing hangs: two patrols in a row agree
    std::shared_ptr<const JudgedReport> found_once;
    size_t live = 0, boxes = 0;
    size_t lost = 0;            // gone without an orderly end
    bool collapsed = false;     // all are gone, and not all in order; nothing hung before
    bool end_judged = false;    // ... and that was judged
    std::vector<std::string> hosts;  // sorted
    std::string stands;              // status and cause that are said of it now, and since when
    int64_t stands_since_wall_ns = 0;
    bool ended() const { return boxes > 0 && live == 0; }
    // Jobs that hang now first, then those that compute nonsense, those whose hang ended with their processes, those
    // that run, those that ended.
    int urgency() const {
      if (hangs_since_wall_ns != 0) return live > 0 ? 0 : 2;
      return live == 0 ? 4 : found_twice ? 1 : 3;
    }
    std::optional<std::string> last_hang;  // headline of a hang that is over
    int64_t last_hang_wall_ns = 0;
  };
  // One moment of the whole cluster; states live as long as it does.
  struct Moment {
    std::vector<AgentView> agents;
    std::vector<std::pair<size_t, const BoxState*>> boxes;  // of agents that answered lately, by agent
    size_t reachable = 0;
    std::map<JobKey, std::vector<JobMember>> Jobs() const;
  };

  explicit Server(ServerOptions options);
  void Loop();
  void LookOnce();
  void Say(const std::string& what) const;
  void SayWhoAnswers(const Moment& moment, int64_t now_ns);
  std::shared_ptr<Moment> Join() const;
  std::vector<HangSuspicion> FindHangs(const Moment& moment, int64_t now_ns);
  void UpdateJobs(const Moment& moment, const std::vector<HangSuspicion>& hangs, int64_t now_ns);
  void JudgeLoop();
  std::optional<JobKey> NextToJudge(bool* patrol) const;
  void Judge(const JobKey& key);
  void Patrol(const JobKey& key);
  std::string FetchRas(const Moment& moment, const JobKey& job);
  // Of the run that `comm` belongs to, 0: of the one that lives.
  static std::vector<std::pair<size_t, const BoxState*>> FindBoxes(const Moment& moment, const JobKey& job,
                                                                   uint64_t comm);
  std::vector<FetchedBox> FetchBoxes(const Moment& moment, const JobKey& job, uint64_t comm, uint64_t records);

  HttpReply Answer(const HttpRequest& request);
  HttpReply AnswerVerdict(const HttpRequest& request, bool page);
  HttpReply AnswerAgents(const Viewer& viewer) const;
  HttpReply AnswerHealth(const Viewer& viewer) const;
  HttpReply AnswerJobs(const Viewer& viewer) const;
  HttpReply AnswerState(const HttpRequest& request) const;
  HttpReply AnswerMetrics(const Viewer& viewer) const;
  void NoteWhatStands(const std::map<JobKey, std::vector<JobMember>>& members);
  static void WriteJobRow(JsonWriter& json, const JobKey& key, const Job& job);
  void WriteJobTable(JsonWriter& json, const Viewer& viewer) const;
  void WriteFailingAgents(JsonWriter& json, const Viewer& viewer) const;
  // The one asked for with ?job=NAME&uid=N, else the worst, among those that may be seen.
  std::optional<JobKey> PickJob(const HttpRequest& request) const;
  std::shared_ptr<Moment> moment() const;

  ServerOptions options_;
  std::unique_ptr<AgentPoll> poll_;
  HangWatch hangs_;  // used by the loop alone
  mutable std::mutex lock_;
  std::condition_variable judge_wake_;
  std::shared_ptr<Moment> moment_;
  std::map<JobKey, Job> jobs_;
  std::map<int64_t, int64_t> judged_ns_;  // when a job of a user was last judged
  std::string source_error_;
  std::pair<size_t, size_t> answering_, answering_said_;  // agents that answer, agents; used by the loop alone
  int64_t answering_since_ns_ = 0;
  std::atomic<size_t> agent_count_{0};
  std::atomic<bool> stop_{false};
  std::unique_ptr<WebAccess> access_;
  std::unique_ptr<HttpServer> server_;
  std::thread loop_, judge_;
};

}  // namespace tacet
