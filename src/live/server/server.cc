// SPDX-License-Identifier: Apache-2.0
#include "live/server/server.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "live/server/fetch_window.h"
#include "live/server/job_runs.h"

namespace tacet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLookEveryNs = kSecond / 2;
constexpr int64_t kReadSourceEveryNs = 15 * kSecond;
constexpr int64_t kJudgeFailedAgainNs = 30 * kSecond;
constexpr unsigned kServerThreads = 8;
constexpr unsigned kFetchThreads = 16;
// Boxes are fetched once and matter more than a brief state: a node that is busy dying may take its time.
constexpr HttpLimits kFetchLimits{.connect_ms = 1500, .whole_ms = 10000, .most_bytes = uint64_t{16} << 20};
// Of all boxes of a job together, whatever agents say about their number. A copy of a box is 0.2 to 2 MB.
constexpr uint64_t kMostFetchedBytes = uint64_t{128} << 20, kLeastBoxBytes = uint64_t{4} << 20;
// An agent that answers with too much, or not at all, is not asked for its other thousand boxes.
constexpr int kMostRefusals = 4;

// A job that runs on may still compute nonsense: one rank skipped a call, sizes differ. So its boxes are read now and
// then, the more seldom the larger the job.
int64_t PatrolAgainAfter(size_t boxes) {
  return boxes <= 128 ? 3 * kSecond : boxes <= 1024 ? 10 * kSecond : 60 * kSecond;
}

bool SaysTheSame(const JudgedReport& a, const JudgedReport& b) { return a.cause == b.cause && a.ranks == b.ranks; }

// Of several runs under one name the one that lives.
std::vector<JobMember> RunOf(const std::vector<JobMember>& members) {
  std::vector<const BoxState*> boxes;
  for (const JobMember& member : members) boxes.push_back(member.box);
  std::vector<JobMember> run;
  for (const size_t i : FindRun(boxes, 0)) run.push_back(members[i]);
  return run;
}

// The longest first; only those of its own run are told together with it.
uint64_t LongestOf(const std::vector<HangSuspicion>& suspicions) {
  const auto longest = std::max_element(suspicions.begin(), suspicions.end(),
                                        [](const auto& a, const auto& b) { return a.still_ns < b.still_ns; });
  return longest == suspicions.end() ? 0 : longest->comm;
}

// While a hang is young its picture still changes: processes die of their own timeouts, operations pass ten seconds.
int64_t JudgeAgainAfter(int judged) { return judged < 6 ? 2 * kSecond : 30 * kSecond; }

}  // namespace

Server::Server(ServerOptions options) : options_(std::move(options)), hangs_(options_.hang_rule) {}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  std::unique_ptr<Server> server(new Server(std::move(options)));
  auto access = WebAccess::Make(server->options_.access, server->options_.listen);
  if (!access) return access.error();
  server->access_ = std::move(*access);
  const AgentListing listing = server->options_.agents.Read();
  server->source_error_ = listing.trouble;  // a name may come to life later
  if (!listing.trouble.empty()) server->Say(listing.trouble + "; retrying");
  server->agent_count_ = listing.agents.size();
  server->poll_ = std::make_unique<AgentPoll>(listing.agents, server->options_.poll);
  server->LookOnce();
  Server* const raw = server.get();
  HttpServerOptions http_options;
  http_options.listen = raw->options_.listen;
  http_options.unix_socket = raw->options_.unix_socket;
  http_options.workers = kServerThreads;
  http_options.limits.connections = raw->options_.most_connections;
  if (raw->access_->uses_tls()) http_options.tls = [raw] { return raw->access_->tls(); };
  http_options.gate = [raw](HttpRequest& request) { return raw->access_->Admit(request); };
  http_options.at_once = [raw](const HttpRequest& request) -> std::optional<HttpReply> {
    if (request.path != "/healthz") return std::nullopt;
    return raw->AnswerHealth(raw->access_->ViewerAtOnce(request));
  };
  auto http =
      HttpServer::Start(std::move(http_options), [raw](const HttpRequest& request) { return raw->Answer(request); });
  if (!http) return http.error();
  server->server_ = std::move(*http);
  server->loop_ = std::thread([raw] { raw->Loop(); });
  server->judge_ = std::thread([raw] { raw->JudgeLoop(); });
  return server;
}

Server::~Server() {
  stop_ = true;
  judge_wake_.notify_all();
  if (poll_) poll_->client().Cancel();  // agents that hang must not keep it from ending
  if (loop_.joinable()) loop_.join();
  if (judge_.joinable()) judge_.join();
  server_.reset();
}

std::shared_ptr<Server::Moment> Server::moment() const {
  const std::lock_guard lock(lock_);
  return moment_;
}

void Server::Loop() {
  int64_t next = 0, read_source = MonotonicNs() + kReadSourceEveryNs;
  while (!stop_) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kLookEveryNs / 5));
    if (MonotonicNs() < next) continue;
    next = MonotonicNs() + kLookEveryNs;
    LookOnce();
    if (!options_.agents.changes() || MonotonicNs() < read_source) continue;
    read_source = MonotonicNs() + kReadSourceEveryNs;
    const AgentListing listing = options_.agents.Read();
    const std::lock_guard lock(lock_);
    if (!listing.trouble.empty() && listing.trouble != source_error_)
      Say(listing.trouble + "; the agents known so far are kept");
    source_error_ = listing.trouble;
    if (!listing.trouble.empty()) continue;
    agent_count_ = listing.agents.size();
    poll_->SetAgents(listing.agents);
  }
}

void Server::Say(const std::string& what) const {
  if (options_.say) options_.say(what);
}

// Who answers and who does not, whenever that has changed and stayed so for a while.
void Server::SayWhoAnswers(const Moment& moment, int64_t now_ns) {
  constexpr int64_t kSettledNs = 5 * kSecond;
  const std::pair<size_t, size_t> now{moment.reachable, moment.agents.size()};
  if (now != answering_) answering_ = now, answering_since_ns_ = now_ns;
  if (answering_ == answering_said_ || now_ns - answering_since_ns_ < kSettledNs) return;
  answering_said_ = answering_;
  std::string line = std::to_string(now.first) + " of " + std::to_string(now.second) +
                     (now.first == 1 && now.second == 1 ? " agent answers" : " agents answer");
  int named = 0;
  for (const AgentView& view : moment.agents)
    if (!view.error.empty() && named++ < 3) line += "; " + Show(view.address) + ": " + view.error;
  if (named > 3) line += "; ...";
  Say(line);
}

// An agent that no longer answers says nothing: what it last said must not look like a standstill.
std::shared_ptr<Server::Moment> Server::Join() const {
  auto moment = std::make_shared<Moment>();
  moment->agents = poll_->Views();
  const int64_t now = MonotonicNs();
  const int64_t stale = std::max(3 * options_.poll.interval_ms * 1'000'000, 5 * kSecond);
  for (size_t i = 0; i < moment->agents.size(); ++i) {
    const AgentView& view = moment->agents[i];
    if (!view.state || now - view.answered_ns > stale) continue;
    ++moment->reachable;
    for (const BoxState& box : view.state->host.boxes) moment->boxes.emplace_back(i, &box);
  }
  return moment;
}

std::map<JobKey, std::vector<JobMember>> Server::Moment::Jobs() const {
  std::map<JobKey, std::vector<JobMember>> jobs;
  for (const auto& [agent, box] : boxes)
    if (box->trouble.empty()) jobs[JobOf(*box)].push_back({Show(agents[agent].address), box});
  return jobs;
}

void Server::LookOnce() {
  auto moment = Join();
  const int64_t now = MonotonicNs();
  const std::vector<HangSuspicion> hangs = FindHangs(*moment, now);
  SayWhoAnswers(*moment, now);
  const std::lock_guard lock(lock_);
  UpdateJobs(*moment, hangs, now);
  moment_ = std::move(moment);
}

// The server's own watch knows all members. What it has not watched for long enough (it was just started) it takes from
// the agents, where all agents that see members waiting agree.
std::vector<HangSuspicion> Server::FindHangs(const Moment& moment, int64_t now_ns) {
  std::vector<const BoxState*> boxes;
  for (const auto& [agent, box] : moment.boxes) boxes.push_back(box);
  std::vector<HangSuspicion> hangs = hangs_.Look(boxes, now_ns, WallNs());
  using Key = std::pair<JobKey, uint64_t>;
  std::set<Key> own;
  for (const HangSuspicion& hang : hangs) own.insert({{hang.uid, hang.job}, hang.comm});
  std::map<Key, std::set<size_t>> waiting, suspecting;
  std::map<Key, HangSuspicion> told;
  for (const auto& [agent, box] : moment.boxes)
    for (const OperationState& op : box->operations)
      if (op.tells_end && box->IsLive()) waiting[{JobOf(*box), op.comm}].insert(agent);
  for (size_t i = 0; i < moment.agents.size(); ++i) {
    if (!moment.agents[i].state) continue;
    for (const HangSuspicion& hang : moment.agents[i].state->suspicions) {
      const Key key({hang.uid, hang.job}, hang.comm);
      suspecting[key].insert(i);
      HangSuspicion& joined = told.emplace(key, hang).first->second;
      joined.still_ns = std::min(joined.still_ns, hang.still_ns);
    }
  }
  for (const auto& [key, hang] : told) {
    const auto& who = waiting[key];
    const bool all =
        !who.empty() && std::includes(suspecting[key].begin(), suspecting[key].end(), who.begin(), who.end());
    if (all && !own.contains(key)) hangs.push_back(hang);
  }
  return hangs;
}

void Server::UpdateJobs(const Moment& moment, const std::vector<HangSuspicion>& hangs, int64_t now_ns) {
  const auto members = moment.Jobs();
  std::erase_if(jobs_, [&](const auto& entry) { return !members.contains(entry.first) && !entry.second.judging; });
  std::map<JobKey, std::vector<const HangSuspicion*>> hangs_of;
  for (const HangSuspicion& hang : hangs) hangs_of[{hang.uid, hang.job}].push_back(&hang);
  for (const auto& [key, list] : members) {
    Job& job = jobs_[key];
    job.boxes = list.size();
    job.live =
        static_cast<size_t>(std::count_if(list.begin(), list.end(), [](const auto& m) { return m.box->IsLive(); }));
    job.lost = static_cast<size_t>(
        std::count_if(list.begin(), list.end(), [](const auto& m) { return !m.box->ended && HasEnded(m.box->sight); }));
    job.suspicions.clear();
    if (const auto found = hangs_of.find(key); found != hangs_of.end())
      for (const HangSuspicion* hang : found->second) job.suspicions.push_back(*hang);
    if (!job.suspicions.empty()) {
      if (job.hangs_since_wall_ns == 0)
        job.hangs_since_wall_ns = job.suspicions[0].since_wall_ns, job.judge_again_ns = now_ns;
      if (!job.judging && now_ns >= job.judge_again_ns) judge_wake_.notify_all();
      continue;
    }
    // Once its processes are gone, a hang has no more witnesses: the verdict stands.
    if (job.hangs_since_wall_ns != 0 && job.live == 0) continue;
    // All are gone, and not all in order: who went first is asked once, and that verdict stands.
    job.collapsed = job.live == 0 && job.lost > 0;
    if (!job.collapsed) job.end_judged = false;
    if (job.end_judged) continue;
    if (job.collapsed && !job.judging) judge_wake_.notify_all();
    if (job.hangs_since_wall_ns != 0 && job.report) {
      job.last_hang = job.report.headline();
      job.last_hang_wall_ns = job.hangs_since_wall_ns;
    }
    job.hangs_since_wall_ns = 0;
    job.judged = 0;
    job.report = {job.found_twice, nullptr};
    if (!job.found_twice)
      job.report.running = std::make_shared<const Report>(DescribeRunningJob(key.name, RunOf(list)));
  }
  NoteWhatStands(members);
}

// Hangs first. Users take turns, and of one user the job that is due longest comes first: whoever lets a thousand jobs
// hang waits for himself.
std::optional<JobKey> Server::NextToJudge(bool* patrol) const {
  const int64_t now = MonotonicNs();
  const auto last_turn = [&](int64_t uid) {
    const auto found = judged_ns_.find(uid);
    return found == judged_ns_.end() ? 0 : found->second;
  };
  for (*patrol = false;; *patrol = true) {
    const JobKey* next = nullptr;
    std::pair<int64_t, int64_t> first;  // the user's last turn, when the job was due
    for (const auto& [key, job] : jobs_) {
      const bool urgent = !job.suspicions.empty() || (job.collapsed && !job.end_judged);
      const int64_t due = urgent ? job.judge_again_ns : job.patrol_again_ns;
      if (urgent == *patrol || now < due || (*patrol && job.live <= 1)) continue;
      const std::pair<int64_t, int64_t> turn(last_turn(key.uid), due);
      if (next == nullptr || turn < first) next = &key, first = turn;
    }
    if (next != nullptr) return *next;
    if (*patrol) return std::nullopt;
  }
}

void Server::JudgeLoop() {
  std::unique_lock held(lock_);
  while (!stop_) {
    bool patrol = false;
    const std::optional<JobKey> next = NextToJudge(&patrol);
    if (!next) {
      judge_wake_.wait_for(held, std::chrono::milliseconds(200));
      continue;
    }
    jobs_[*next].judging = true;
    if (judged_ns_.size() > jobs_.size() + 1024) judged_ns_.clear();
    judged_ns_[next->uid] = MonotonicNs();
    held.unlock();
    patrol ? Patrol(*next) : Judge(*next);
    held.lock();
    jobs_[*next].judging = false;
  }
}

// A call that was left out shows only where it happened: the records of two patrols must overlap.
void Server::Patrol(const JobKey& key) {
  const auto seen = moment();
  uint64_t issued = 0, before = 0;
  for (const auto& [agent, box] : seen->boxes)
    if (JobOf(*box) == key) issued = std::max(issued, IssuedBy(*box));
  {
    const std::lock_guard lock(lock_);
    before = std::exchange(jobs_[key].patrolled_issued, issued);
  }
  const uint64_t fresh = issued > before ? issued - before : issued;
  auto judged = JudgeApart({FetchBoxes(*seen, key, 0, PatrolRecords(fresh)), {}, "", true}, options_.judge, stop_);
  if (!judged) Say("job " + EscapeForTerminal(key.name) + " cannot be judged: " + judged.error().message);
  auto report = std::make_shared<const JudgedReport>(judged ? std::move(*judged) : JudgedReport());
  const std::lock_guard lock(lock_);
  Job& job = jobs_[key];
  // It stands until the job ends: what was computed wrongly does not become right when the record of it is overwritten.
  const bool again = report->wrong && job.found_once && SaysTheSame(*report, *job.found_once);
  if (again && !job.found_twice) job.found_twice = report, job.report = {report, nullptr};
  job.found_once = report->wrong ? report : nullptr;
  // What could not be judged once will hardly be the next time.
  job.patrol_again_ns = MonotonicNs() + (judged ? PatrolAgainAfter(job.boxes) : kJudgeFailedAgainNs);
}

void Server::Judge(const JobKey& key) {
  const auto seen = moment();
  std::vector<HangSuspicion> suspicions;
  {
    const std::lock_guard lock(lock_);
    suspicions = jobs_[key].suspicions;
  }
  const uint64_t comm = LongestOf(suspicions);
  std::set<uint64_t> of_run;
  for (const auto& [agent, box] : FindBoxes(*seen, key, comm))
    for (const CommState& one : box->comms) of_run.insert(one.id);
  std::erase_if(suspicions, [&](const HangSuspicion& hang) { return !of_run.contains(hang.comm); });
  auto judged = JudgeApart({FetchBoxes(*seen, key, comm, kUsualRecords), suspicions, FetchRas(*seen, key), false},
                           options_.judge, stop_);
  if (!judged && stop_) return;
  if (!judged && suspicions.empty()) {  // all processes are gone: what is known of them stands until it can be judged
    Say("job " + EscapeForTerminal(key.name) + " cannot be judged: " + judged.error().message);
    const std::lock_guard lock(lock_);
    jobs_[key].judge_again_ns = MonotonicNs() + kJudgeFailedAgainNs;
    return;
  }
  JudgedReport report;
  if (judged) {
    report = std::move(*judged);
  } else {  // that it hangs is known even so
    Say("job " + EscapeForTerminal(key.name) + " cannot be judged: " + judged.error().message);
    report = JudgeHere({{}, suspicions, "", false});
    report.headline += "; its boxes could not be judged: " + judged.error().message;
  }
  const std::lock_guard lock(lock_);
  Job& job = jobs_[key];
  job.judge_again_ns = MonotonicNs() + (judged ? JudgeAgainAfter(job.judged++) : kJudgeFailedAgainNs);
  if (job.hangs_since_wall_ns != 0 || job.collapsed)
    job.report = {std::make_shared<const JudgedReport>(std::move(report)), nullptr};
  job.end_judged = job.collapsed && judged.ok();
}

// RAS answers for the whole job, so one agent that got an answer is enough; a few are tried.
std::string Server::FetchRas(const Moment& moment, const JobKey& job) {
  std::set<size_t> agents;
  for (const auto& [agent, box] : moment.boxes)
    if (JobOf(*box) == job && box->IsLive() && agents.size() < 3) agents.insert(agent);
  for (const size_t agent : agents)
    if (auto answer = poll_->client().Get(moment.agents[agent].address, "/api/v1/ras?uid=" + std::to_string(job.uid),
                                          options_.poll.limits))
      return *answer;
  return "";
}

std::vector<std::pair<size_t, const BoxState*>> Server::FindBoxes(const Moment& moment, const JobKey& job,
                                                                  uint64_t comm) {
  std::vector<std::pair<size_t, const BoxState*>> named, found;
  std::vector<const BoxState*> boxes;
  for (const auto& [agent, box] : moment.boxes)
    if (box->trouble.empty() && JobOf(*box) == job) named.emplace_back(agent, box), boxes.push_back(box);
  for (const size_t i : FindRun(boxes, comm)) found.push_back(named[i]);
  return found;
}

std::vector<FetchedBox> Server::FetchBoxes(const Moment& moment, const JobKey& job, uint64_t comm, uint64_t records) {
  const auto wanted = FindBoxes(moment, job, comm);
  const std::string newest = std::to_string(RecordsToFetch(records, wanted.size()));
  std::vector<FetchedBox> boxes(wanted.size());
  std::atomic<uint64_t> fetched{0};
  std::vector<std::atomic<int>> refused(moment.agents.size());
  HttpLimits limits = kFetchLimits;
  limits.most_bytes =
      std::clamp(kMostFetchedBytes / std::max<size_t>(1, wanted.size()), kLeastBoxBytes, limits.most_bytes);
  ParallelFor(wanted.size(), kFetchThreads, [&](size_t i) {
    const auto& [agent, box] = wanted[i];
    const AgentView& view = moment.agents[agent];
    if (fetched > kMostFetchedBytes || refused[agent] >= kMostRefusals) return;
    const std::string path = "/api/v1/boxes/" + EncodeUrlPath(box->name) + "?newest=" + newest;
    auto body = poll_->client().Get(view.address, path, limits);
    if (!body) body = poll_->client().Get(view.address, path, limits);
    refused[agent] += body ? 0 : 1;
    if (!body || (fetched += body->size()) > kMostFetchedBytes) return;
    boxes[i] = {view.state->host.host + "/" + box->name, std::move(*body), box->sight, view.state->host.wall_ns};
  });
  std::erase_if(boxes, [](const FetchedBox& box) { return box.bytes.empty(); });
  return boxes;
}

}  // namespace tacet
