// SPDX-License-Identifier: Apache-2.0
// The tables of the live page: jobs, and agents that do not answer.
#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "live/server/server.h"

namespace tacet {
namespace {

// A page that nobody can read helps nobody; /api/v1/jobs and /api/v1/agents have all.
constexpr size_t kMostTableJobs = 200, kMostTableHosts = 8, kMostFailingAgents = 50;

}  // namespace

void Server::NoteWhatStands(const std::map<JobKey, std::vector<JobMember>>& members) {
  for (const auto& [key, list] : members) {
    Job& job = jobs_[key];
    std::set<std::string> hosts;
    for (const JobMember& member : list) hosts.insert(member.box->host);
    job.hosts.assign(hosts.begin(), hosts.end());
    std::string stands = job.report ? job.report.status() + " " + job.report.cause() : "";
    if (stands != job.stands) job.stands = std::move(stands), job.stands_since_wall_ns = WallNs();
  }
}

void Server::WriteJobRow(JsonWriter& json, const JobKey& key, const Job& job) {
  json.BeginObject();
  json.Key("job").String(key.name);
  json.Key("uid");
  key.uid < 0 ? json.Null() : json.Int(key.uid);
  json.Key("processes").Int(static_cast<int64_t>(job.boxes));
  json.Key("processes_live").Int(static_cast<int64_t>(job.live));
  json.Key("status").String(job.report ? job.report.status() : "undetermined");
  json.Key("cause");
  job.report && !job.report.cause().empty() ? json.String(job.report.cause()) : json.Null();
  json.Key("headline").String(job.report ? job.report.headline() : "");
  json.Key("ended").Bool(job.ended());
  // Who is at fault, where the rules name somebody.
  json.Key("ranks").BeginArray();
  if (job.report.judged)
    for (const int rank : job.report.judged->ranks) json.Int(rank);
  json.EndArray();
  // A hang began before it was told.
  const int64_t since = job.hangs_since_wall_ns != 0 ? job.hangs_since_wall_ns : job.stands_since_wall_ns;
  json.Key("since_wall_ns");
  since == 0 ? json.Null() : json.Int(since);
  json.Key("host_count").Int(static_cast<int64_t>(job.hosts.size()));
  json.Key("hosts").BeginArray();
  for (size_t i = 0; i < job.hosts.size() && i < kMostTableHosts; ++i) json.String(job.hosts[i]);
  json.EndArray();
  json.Key("last_hang");
  job.last_hang ? json.String(*job.last_hang) : json.Null();
  json.EndObject();
}

void Server::WriteJobTable(JsonWriter& json, const Viewer& viewer) const {
  std::vector<const std::pair<const JobKey, Job>*> rows;
  for (const auto& entry : jobs_)
    if (viewer.Sees(entry.first.uid)) rows.push_back(&entry);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->second.urgency() < b->second.urgency(); });
  json.Key("table_left_out").Int(static_cast<int64_t>(rows.size() - std::min(rows.size(), kMostTableJobs)));
  json.Key("table").BeginArray();
  for (size_t i = 0; i < rows.size() && i < kMostTableJobs; ++i) WriteJobRow(json, rows[i]->first, rows[i]->second);
  json.EndArray();
}

// Operators only: the nodes of a cluster are no business of its users.
void Server::WriteFailingAgents(JsonWriter& json, const Viewer& viewer) const {
  json.Key("list_error");
  source_error_.empty() || !viewer.sees_all ? json.Null() : json.String(source_error_);
  json.Key("failing_agents").BeginArray();
  size_t told = 0;
  for (const AgentView& view : moment_->agents) {
    if (view.error.empty() || !viewer.sees_all || told++ >= kMostFailingAgents) continue;
    json.BeginObject();
    json.Key("address").String(Show(view.address));
    json.Key("host");
    view.state ? json.String(view.state->host.host) : json.Null();
    json.Key("error").String(view.error);
    json.Key("failures").Int(view.failures);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace tacet
