// SPDX-License-Identifier: Apache-2.0
#include "live/agent/agent.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/clock.h"
#include "base/json_writer.h"
#include "live/state_metrics.h"

namespace tacet {
namespace {

constexpr unsigned kHttpThreads = 8;
constexpr uint32_t kNewestRecords = 256, kMostNewestRecords = 32768;

std::string OwnHostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace

Agent::Agent(AgentOptions options) : options_(std::move(options)), watch_(options_.boxes), hangs_(options_.hang_rule) {
  if (options_.host.empty()) options_.host = OwnHostName();
}

Result<std::unique_ptr<Agent>> Agent::Start(AgentOptions options) {
  std::unique_ptr<Agent> agent(new Agent(std::move(options)));
  auto access = WebAccess::Make(agent->options_.access, agent->options_.listen);
  if (!access) return access.error();
  agent->access_ = std::move(*access);
  if (agent->options_.history) agent->history_ = std::make_unique<HistorySink>(*agent->options_.history);
  if (agent->options_.ask_ras) agent->ras_ = std::make_unique<RasWatch>(agent->options_.ras);
  agent->LookOnce();
  HttpServerOptions http;
  http.listen = agent->options_.listen;
  http.unix_socket = agent->options_.unix_socket;
  http.workers = kHttpThreads;
  http.limits.connections = agent->options_.most_connections;
  Agent* const raw = agent.get();
  if (raw->access_->uses_tls()) http.tls = [raw] { return raw->access_->tls(); };
  http.gate = [raw](HttpRequest& request) { return raw->access_->Admit(request); };
  http.at_once = [raw](const HttpRequest& request) -> std::optional<HttpReply> {
    if (request.path != "/healthz") return std::nullopt;
    return raw->AnswerHealth(raw->access_->ViewerAtOnce(request));
  };
  auto server = HttpServer::Start(std::move(http), [raw](const HttpRequest& request) { return raw->Answer(request); });
  if (!server) return server.error();
  agent->server_ = std::move(*server);
  agent->loop_ = std::thread([raw] { raw->Loop(); });
  return agent;
}

Agent::~Agent() {
  stop_ = true;
  if (loop_.joinable()) loop_.join();
  server_.reset();
}

std::shared_ptr<const AgentState> Agent::state() const {
  const std::lock_guard lock(state_lock_);
  return state_;
}

void Agent::Loop() {
  int64_t next = MonotonicNs();
  while (!stop_) {
    next += options_.interval_ms * 1'000'000;
    while (!stop_ && MonotonicNs() < next)
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<int64_t>(next - MonotonicNs(), 50'000'000)));
    if (!stop_) LookOnce();
    next = std::max(next, MonotonicNs() - options_.interval_ms * 1'000'000);  // a late look is not made up for
  }
}

void Agent::LookOnce() {
  auto state = std::make_shared<AgentState>();
  {
    const std::lock_guard lock(watch_lock_);
    const int64_t began = MonotonicNs();
    state->host = watch_.Look(WallNs(), [&](const FinishedOperation& finished) {
      operations_.Add(finished);
      normal_.Add(finished);
      if (history_) history_->Add(finished, options_.host);
    });
    operations_.ForgetJobsNotIn(state->host);
    normal_.ForgetBoxesNotIn(state->host);
    JudgeHangs(*state);
    CleanUp(state->host);
    ++looks_;
    look_seconds_ += static_cast<double>(MonotonicNs() - began) / 1e9;
    state->host.host = options_.host;
    state->note = DescribeFolder(options_.boxes.root, watch_.listing());
  }
  std::vector<std::string> complaints = FindComplaints(*state, watch_.listing());
  if (options_.say)
    for (const std::string& complaint : complaint_log_.TakeNew(complaints)) options_.say(complaint);
  const std::lock_guard lock(state_lock_);
  complaints_ = std::move(complaints);
  state_ = std::move(state);
  looked_monotonic_ns_ = MonotonicNs();
}

void Agent::JudgeHangs(AgentState& state) {
  std::vector<const BoxState*> boxes;
  for (BoxState& box : state.host.boxes) {
    for (OperationState& op : box.operations) op.normal_ns = normal_.NormalNs(box.name, op);
    boxes.push_back(&box);
  }
  state.suspicions = hangs_.Look(boxes, MonotonicNs(), state.host.wall_ns);
  std::set<JobKey> jobs;
  for (const HangSuspicion& suspicion : state.suspicions) jobs.insert({suspicion.uid, suspicion.job});
  for (BoxState& box : state.host.boxes) box.suspected = jobs.contains(JobOf(box));
}

// A suspected hang is evidence from then on. Once every 16 looks what has expired is removed.
void Agent::CleanUp(const HostState& state) {
  bool live = false, suspected = false;
  for (const BoxState& box : state.boxes) {
    live |= box.IsLive();
    suspected |= box.suspected;
    if (box.suspected && marked_.insert(box.name).second) watch_.MarkEvidence(box.name);
  }
  if (ras_) ras_->Update(live, suspected);
  if (!options_.clean_up || looks_ % 16 != 0) return;
  std::set<std::string> evidence = marked_;
  for (const BoxState& box : state.boxes)
    if (!box.IsLive() && watch_.IsEvidence(box.name)) evidence.insert(box.name);
  for (const std::string& name : BoxKeeping(options_.keep_rule).FindExpired(state, evidence))
    removed_ += watch_.Remove(name) ? 1 : 0;
}

// Whoever asks for one user's jobs gets what that user's process said: any process may listen on RAS' port.
HttpReply Agent::AnswerRas(const HttpRequest& request) const {
  const auto answer = ras_ ? ras_->latest() : nullptr;
  if (!answer || !request.viewer.Sees(answer->uid)) return NotFound("RAS has not been asked yet");
  const std::string wanted = request.Query("uid");
  if (!wanted.empty() && answer->uid >= 0 && wanted != std::to_string(answer->uid))
    return NotFound("the process that listens on the port of RAS belongs to uid " + std::to_string(answer->uid));
  if (answer->text.empty()) return NotFound(answer->error);
  return {200, "text/plain; charset=utf-8", answer->text};
}

HttpReply Agent::AnswerMetrics(const Viewer& viewer) {
  const int64_t began = MonotonicNs();
  std::vector<MetricFamily> families;
  const auto seen = state();
  const std::lock_guard lock(watch_lock_);
  operations_.AppendTo(families, viewer);
  AppendStateMetrics(*seen, viewer, families);
  const auto own = [&](std::string name, MetricType type, std::string help, double value) {
    families.push_back({std::move(name), type, std::move(help), {{{}, value}}, {}});
  };
  if (history_) history_->AppendTo(families);
  own("tacet_agent_looks_total", MetricType::counter, "Scans of all boxes", static_cast<double>(looks_));
  own("tacet_agent_look_seconds_total", MetricType::counter, "Time spent scanning boxes", look_seconds_);
  own("tacet_agent_scrapes_total", MetricType::counter, "Scrapes before this one", static_cast<double>(scrapes_));
  own("tacet_agent_scrape_seconds_total", MetricType::counter, "Time spent answering scrapes", scrape_seconds_);
  own("tacet_agent_boxes_left_out", MetricType::gauge, "Boxes not watched, beyond the limit of one agent",
      static_cast<double>(watch_.listing().left_out));
  own("tacet_agent_boxes_removed_total", MetricType::counter, "Boxes of ended processes removed",
      static_cast<double>(removed_));
  own("tacet_agent_ras_up", MetricType::gauge, "1 if NCCL RAS answered the latest request",
      ras_ && ras_->latest() && !ras_->latest()->text.empty() ? 1.0 : 0.0);
  HttpReply reply{200, "text/plain; version=0.0.4; charset=utf-8", RenderPrometheus(families)};
  ++scrapes_;
  scrape_seconds_ += static_cast<double>(MonotonicNs() - began) / 1e9;
  return reply;
}

HttpReply Agent::AnswerState(const HttpRequest& request) const {
  const StateForm form = request.Query("brief") == "1" ? StateForm::brief : StateForm::full;
  const auto seen = state();
  if (request.viewer.sees_all) return {200, "application/json", WriteState(*seen, form)};
  AgentState part;
  part.host.host = seen->host.host;
  part.host.wall_ns = seen->host.wall_ns;
  part.note = seen->note;
  for (const BoxState& box : seen->host.boxes)
    if (request.viewer.Sees(box.uid)) part.host.boxes.push_back(box);
  for (const HangSuspicion& hang : seen->suspicions)
    if (request.viewer.Sees(hang.uid)) part.suspicions.push_back(hang);
  return {200, "application/json", WriteState(part, form)};
}

HttpReply Agent::AnswerBox(const std::string& name, const HttpRequest& request) {
  uint32_t newest = kNewestRecords;
  if (const std::string asked = request.Query("newest"); !asked.empty()) {
    if (asked.size() > 6 || asked.find_first_not_of("0123456789") != std::string::npos)
      return BadRequest("newest is a number of records");
    newest = std::min(static_cast<uint32_t>(std::stoul(asked)), kMostNewestRecords);
  }
  const std::lock_guard lock(watch_lock_);
  std::string copy = request.viewer.Sees(watch_.OwnerOf(name)) ? watch_.CopyBox(name, newest) : "";
  if (copy.empty()) return NotFound("no such box; /api/v1/boxes lists them");
  return {200, "application/octet-stream", std::move(copy)};
}

// 200 as long as the agent itself works; a box that cannot be read is no reason to restart it.
// What is wrong names boxes and jobs, and is for those who may know of all of them.
HttpReply Agent::AnswerHealth(const Viewer& viewer) const {
  const int64_t late = MonotonicNs() - looked_monotonic_ns_;
  if (late >= 10'000'000'000 + 5 * options_.interval_ms * 1'000'000)
    return {503, "text/plain", "the watching thread is stuck\n"};
  std::string text = "ok\n";
  if (!viewer.sees_all) return {200, "text/plain; charset=utf-8", std::move(text)};
  const std::lock_guard lock(state_lock_);
  for (const std::string& complaint : complaints_) text += complaint + "\n";
  return {200, "text/plain; charset=utf-8", std::move(text)};
}

HttpReply Agent::AnswerBoxes(const Viewer& viewer) const {
  JsonWriter json;
  json.BeginObject().Key("boxes").BeginArray();
  for (const BoxState& box : state()->host.boxes)
    if (viewer.Sees(box.uid)) json.String(box.name);
  json.EndArray().EndObject();
  return {200, "application/json", json.Take() + "\n"};
}

HttpReply Agent::Answer(const HttpRequest& request) {
  static constexpr std::string_view kBoxes = "/api/v1/boxes";
  const std::string& path = request.path;
  if (path == "/metrics") return AnswerMetrics(request.viewer);
  if (path == "/api/v1/state") return AnswerState(request);
  if (path == "/api/v1/ras") return AnswerRas(request);
  if (path == "/healthz") return AnswerHealth(request.viewer);
  if (path == kBoxes) return AnswerBoxes(request.viewer);
  if (path.size() > kBoxes.size() && path.starts_with(std::string(kBoxes) + "/"))
    return AnswerBox(path.substr(kBoxes.size() + 1), request);
  return NotFound("try /metrics, /healthz, /api/v1/state, /api/v1/boxes");
}

}  // namespace tacet
