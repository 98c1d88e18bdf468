// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.h"
#include "base/json_writer.h"
#include "live/server/server.h"
#include "live/state_json.h"
#include "render/report/html_render.h"
#include "render/report/json_render.h"
#include "render/report/prometheus_render.h"

namespace tacet {
namespace {

constexpr size_t kPage = 256, kLargestPage = 4096;
constexpr size_t kMostJobsOfUser = 1000;  // in metrics

size_t NumberIn(const HttpRequest& request, const std::string& name, size_t otherwise) {
  const std::string text = request.Query(name);
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return otherwise;
  return static_cast<size_t>(std::stoul(text));
}

HttpReply Json(JsonWriter& json) { return {200, "application/json", json.Take() + "\n"}; }

// What no job of the past or present is behind.
Report EmptyReport(bool reached) {
  Report report;
  report.verdict.status = reached ? Status::healthy : Status::undetermined;
  report.verdict.confidence = Confidence::possible;
  report.verdict.headline = reached ? "No job with black boxes runs on these nodes" : "No agent answers yet";
  return report;
}

}  // namespace

HttpReply Server::Answer(const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/") return AnswerVerdict(request, true);
  if (path == "/api/v1/verdict") return AnswerVerdict(request, false);
  if (path == "/api/v1/agents") return AnswerAgents(request.viewer);
  if (path == "/api/v1/jobs") return AnswerJobs(request.viewer);
  if (path == "/api/v1/state") return AnswerState(request);
  if (path == "/metrics") return AnswerMetrics(request.viewer);
  if (path == "/healthz") return AnswerHealth(request.viewer);
  return NotFound("try /, /metrics, /healthz, /api/v1/verdict, /api/v1/jobs, /api/v1/agents, /api/v1/state");
}

std::optional<JobKey> Server::PickJob(const HttpRequest& request) const {
  const std::string name = request.Query("job"), uid = request.Query("uid");
  const std::pair<const JobKey, Job>* worst = nullptr;
  for (const auto& entry : jobs_) {
    const JobKey& key = entry.first;
    if (!request.viewer.Sees(key.uid) || (!name.empty() && key.name != name)) continue;
    if (!uid.empty() && std::to_string(key.uid) != uid) continue;
    if (worst == nullptr || entry.second.urgency() < worst->second.urgency()) worst = &entry;
  }
  return worst == nullptr ? std::nullopt : std::optional<JobKey>(worst->first);
}

HttpReply Server::AnswerVerdict(const HttpRequest& request, bool page) {
  std::unique_lock held(lock_);
  const auto key = PickJob(request);
  if (!key && !request.Query("job").empty()) return NotFound("no such job; /api/v1/jobs lists them");
  JsonWriter live;
  live.BeginObject();
  live.Key("job");
  key ? live.String(key->name) : live.Null();
  Verdict report;
  if (key) {
    live.Key("uid");
    key->uid < 0 ? live.Null() : live.Int(key->uid);
    const Job& job = jobs_.at(*key);
    report = job.report;
    live.Key("hangs").Bool(job.hangs_since_wall_ns != 0);
    live.Key("hangs_since_wall_ns");
    job.hangs_since_wall_ns == 0 ? live.Null() : live.Int(job.hangs_since_wall_ns);
    live.Key("suspicions").BeginArray();
    for (const HangSuspicion& suspicion : job.suspicions) WriteSuspicion(live, suspicion);
    live.EndArray();
    live.Key("processes").Int(static_cast<int64_t>(job.boxes));
    live.Key("processes_live").Int(static_cast<int64_t>(job.live));
    live.Key("last_hang");
    job.last_hang ? live.String(*job.last_hang) : live.Null();
  }
  live.Key("agents").Int(static_cast<int64_t>(moment_->agents.size()));
  live.Key("agents_reachable").Int(static_cast<int64_t>(moment_->reachable));
  live.Key("jobs").BeginArray();
  std::string last;
  for (const auto& [job, entry] : jobs_)  // by name; two users may have the same
    if (request.viewer.Sees(job.uid) && (last.empty() || job.name != last)) live.String(last = job.name);
  live.EndArray();
  live.Key("wall_ns").Int(WallNs());
  WriteJobTable(live, request.viewer);
  WriteFailingAgents(live, request.viewer);
  live.EndObject();
  if (!report) report.running = std::make_shared<const Report>(EmptyReport(moment_->reachable > 0));
  held.unlock();
  if (page)
    return {200, "text/html; charset=utf-8",
            report.judged ? RenderLiveHtml(report.judged->status, report.judged->text, report.judged->json, live.text())
                          : RenderLiveHtml(*report.running, live.text())};
  // The report's own object, with one more member in front.
  const std::string json = report.judged ? report.judged->json : RenderJson(*report.running);
  return {200, "application/json", "{\"live\":" + live.Take() + "," + json.substr(1)};
}

HttpReply Server::AnswerHealth(const Viewer& viewer) const {
  if (!viewer.sees_all) return {200, "text/plain; charset=utf-8", "ok\n"};
  const std::lock_guard lock(lock_);
  std::string text = "ok\n" + std::to_string(moment_->reachable) + " of " + std::to_string(moment_->agents.size()) +
                     (moment_->reachable == 1 && moment_->agents.size() == 1 ? " agent answers\n" : " agents answer\n");
  if (!source_error_.empty()) text += source_error_ + "\n";
  return {200, "text/plain; charset=utf-8", std::move(text)};
}

HttpReply Server::AnswerAgents(const Viewer& viewer) const {
  if (!viewer.sees_all) return ErrorReply(403, "only operators see the nodes of a cluster");
  const auto seen = moment();
  std::string trouble;
  {
    const std::lock_guard lock(lock_);
    trouble = source_error_;
  }
  JsonWriter json;
  json.BeginObject();
  json.Key("reachable").Int(static_cast<int64_t>(seen->reachable));
  json.Key("list_error");
  trouble.empty() ? json.Null() : json.String(trouble);
  json.Key("agents").BeginArray();
  for (const AgentView& view : seen->agents) {
    json.BeginObject();
    json.Key("address").String(Show(view.address));
    json.Key("host");
    view.state ? json.String(view.state->host.host) : json.Null();
    json.Key("boxes").Int(view.state ? static_cast<int64_t>(view.state->host.boxes.size()) : 0);
    json.Key("failures").Int(view.failures);
    json.Key("error");
    view.error.empty() ? json.Null() : json.String(view.error);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return Json(json);
}

HttpReply Server::AnswerJobs(const Viewer& viewer) const {
  const std::lock_guard lock(lock_);
  JsonWriter json;
  json.BeginObject().Key("jobs").BeginArray();
  for (const auto& [key, job] : jobs_) {
    if (!viewer.Sees(key.uid)) continue;
    WriteJobRow(json, key, job);
  }
  json.EndArray().EndObject();
  return Json(json);
}

HttpReply Server::AnswerState(const HttpRequest& request) const {
  const auto seen = moment();
  const std::string job = request.Query("job");
  const size_t offset = NumberIn(request, "offset", 0);
  const size_t limit = std::min(NumberIn(request, "limit", kPage), kLargestPage);
  JsonWriter json;
  json.BeginObject();
  json.Key("schema").String("tacet.cluster.v1");
  json.Key("offset").Int(static_cast<int64_t>(offset));
  json.Key("boxes").BeginArray();
  size_t index = 0;
  for (const auto& [agent, box] : seen->boxes) {
    if (!request.viewer.Sees(box->uid) || (!job.empty() && box->job != job)) continue;
    if (index >= offset && index < offset + limit) WriteBox(json, *box, StateForm::brief);
    ++index;
  }
  json.EndArray();
  json.Key("total").Int(static_cast<int64_t>(index));
  json.EndObject();
  return Json(json);
}

HttpReply Server::AnswerMetrics(const Viewer& viewer) const {
  const auto seen = moment();
  std::vector<MetricFamily> families;
  MetricFamily agents{"tacet_serve_agents", MetricType::gauge, "Agents, by whether they answered recently", {}, {}};
  agents.samples = {{{{"state", "up"}}, static_cast<double>(seen->reachable)},
                    {{{"state", "down"}}, static_cast<double>(seen->agents.size() - seen->reachable)}};
  MetricFamily processes{"tacet_job_processes", MetricType::gauge, "Live processes with a black box", {}, {}};
  MetricFamily hang{"tacet_job_hangs", MetricType::gauge, "1 while the job hangs, else 0", {}, {}};
  MetricFamily verdict{"tacet_job_verdict_info", MetricType::gauge, "The current verdict", {}, {}};
  const std::lock_guard lock(lock_);
  std::map<int64_t, size_t> told_of;  // by user
  for (const auto& [key, job] : jobs_) {
    if (!viewer.Sees(key.uid) || ++told_of[key.uid] > kMostJobsOfUser) continue;
    MetricLabels labels = {{"job_id", key.name}, {"uid", key.uid < 0 ? "" : std::to_string(key.uid)}};
    processes.samples.push_back({labels, static_cast<double>(job.live)});
    hang.samples.push_back({labels, job.hangs_since_wall_ns != 0 ? 1.0 : 0.0});
    if (!job.report) continue;
    labels.insert(labels.end(), {{"status", job.report.status()}, {"cause", job.report.cause()}});
    verdict.samples.push_back({std::move(labels), 1});
  }
  for (MetricFamily* family : {&agents, &processes, &hang, &verdict}) families.push_back(std::move(*family));
  return {200, "text/plain; version=0.0.4; charset=utf-8", RenderPrometheus(families)};
}

}  // namespace tacet
