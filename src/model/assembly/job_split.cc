// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/job_split.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/assembly/file_rank.h"

namespace tacet {
namespace {

// A folder makes its files part of a job. Folders that merely number a rank ("attempt_0/3/stdout.log", "rank3/…",
// "inspector/…" beside others) are not jobs of their own: they only become so when their claims collide.
struct Folder {
  std::string name;
  std::vector<size_t> members;
  // (format, rank), and whether the name of a file that claims it tells a rank: that of a launcher's output does not.
  std::map<std::pair<std::string, Rank>, bool> claims;
  std::optional<std::string> torchrun;  // of a folder in the tree of torchrun's --log-dir: where the run's part begins
  std::string run;                      // the folder of `tacet run` that it lies in; empty: none
  bool in_run = false;
  std::set<uint64_t> comms;
  size_t job = SIZE_MAX;
  std::string_view slurm_job;  // whose output its one file is; empty: not told
  // Of output that is no rank's own: the steps that it tells, in how many lines.
  int64_t first_step = -1, last_step = -1, step_lines = 0;
  std::set<std::string> versions, hosts;  // of NCCL, and of the processes that speak in its files
  std::set<Rank> ranks;
  int64_t world = -1;         // the largest that a file states
  bool has_nccl_log = false;  // of a process that tells its id
};

// The number of the job whose output sbatch writes to slurm-4711.out, of an array to slurm-4711_3.out; else empty.
std::string_view SlurmJobOf(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with("slurm-")) return {};
  name.remove_prefix(6);
  const size_t end = name.find_first_not_of("0123456789_");
  const std::string_view rest = end == std::string_view::npos ? std::string_view() : name.substr(end);
  return end > 0 && (rest == ".out" || rest == ".err" || rest == ".log") ? name.substr(0, end) : std::string_view();
}

// "logs/slurm-4711": output and errors of one job are one.
std::string SlurmLabel(std::string_view path) { return std::string(path.substr(0, path.rfind('.'))); }

void ClaimSteps(const Fragment& fragment, Folder& folder) {
  for (const TrainingRecord& record : fragment.training) {
    if (record.first_step < 0 || record.last_step <= record.first_step || record.lines <= folder.step_lines) continue;
    folder.first_step = record.first_step;
    folder.last_step = record.last_step;
    folder.step_lines = record.lines;
  }
}

// Both tell of the same steps, and one came much further: nodes of one job stop within a step or two of each other.
bool AreOutOfStep(const Folder& a, const Folder& b) {
  constexpr int64_t kFewestLines = 4, kLinesApart = 4;
  if (a.step_lines < kFewestLines || b.step_lines < kFewestLines) return false;
  if (a.first_step > b.last_step || b.first_step > a.last_step) return false;
  const auto between_lines = [](const Folder& one) {
    return std::max<int64_t>((one.last_step - one.first_step) / (one.step_lines - 1), 1);
  };
  const int64_t apart = a.last_step > b.last_step ? a.last_step - b.last_step : b.last_step - a.last_step;
  return apart > kLinesApart * std::max(between_lines(a), between_lines(b));
}

// One lies in the other.
bool IsInside(std::string_view inner, std::string_view outer) {
  return outer.empty() || inner == outer || (inner.starts_with(outer) && inner[outer.size()] == '/');
}

void Claim(const Fragment& fragment, Folder& folder) {
  const bool named = RankFromPath(fragment.path).has_value();
  for (const Speaker& speaker : fragment.speakers)
    if (speaker.rank.known()) folder.claims[{fragment.format, speaker.rank}] |= named;
  for (const Speaker& speaker : fragment.speakers) {
    if (!speaker.host.empty()) folder.hosts.insert(speaker.host);
    folder.world = std::max(folder.world, speaker.world_size);
    folder.has_nccl_log |= speaker.pid > 0 && fragment.format.starts_with("nccl_log");
    if (speaker.rank.known()) folder.ranks.insert(speaker.rank);
  }
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::nccl_version) folder.versions.insert(event.As<Version>().number);
  if (!named) ClaimSteps(fragment, folder);
  if (const auto place = TorchrunPlaceOf(fragment.path)) folder.torchrun = place->run;
  for (const Group& group : fragment.groups) {
    if (group.comm_id != 0) folder.comms.insert(group.comm_id);
    folder.world =
        std::max({folder.world, static_cast<int64_t>(group.size), static_cast<int64_t>(group.members.size())});
  }
}

// A log of a process without a rank is of another job where all ranks of this one are here, and none of them runs the
// NCCL that the log names, on a host that the log names. Nodes whose files say less may be nodes of one job.
bool IsOfAnotherJob(const Folder& lone, const std::vector<Folder*>& job) {
  if (!lone.has_nccl_log || lone.versions.empty()) return false;
  std::set<Rank> ranks;
  int64_t world = lone.world;
  bool told = false;
  for (const Folder* folder : job) {
    if (IsInside(lone.name, folder->name) || IsInside(folder->name, lone.name)) return false;
    ranks.insert(folder->ranks.begin(), folder->ranks.end());
    world = std::max(world, folder->world);
    told |= !folder->versions.empty();
    const auto shares = [&](std::set<std::string> Folder::*names) {
      return std::any_of((lone.*names).begin(), (lone.*names).end(),
                         [&](const std::string& one) { return (folder->*names).contains(one); });
    };
    if (shares(&Folder::versions) || shares(&Folder::hosts)) return false;
  }
  return told && world > 1 && static_cast<int64_t>(ranks.size()) >= world;
}

std::string_view FolderAbove(std::string_view folder) {
  const size_t slash = folder.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : folder.substr(0, slash);
}

bool ShareCommunicator(const Folder& a, const Folder& b) {
  const auto& [fewer, more] = a.comms.size() < b.comms.size() ? std::tie(a.comms, b.comms) : std::tie(b.comms, a.comms);
  return std::any_of(fewer.begin(), fewer.end(), [&](uint64_t id) { return more.contains(id); });
}

// The launcher's own output tells of the ranks whose files lie in its tree, and a restart leaves one attempt beside the
// other: neither is a second job.
bool AreOneRun(const Folder& a, bool a_named, const Folder& b, bool b_named) {
  if (a.in_run && b.in_run && a.run == b.run) return true;  // looks at one job, one after the other
  if (a.torchrun && b.torchrun) return a.torchrun == b.torchrun;
  return (a.torchrun && !b_named) || (b.torchrun && !a_named);
}

// The jobs found so far, one folder after the other. Whom a folder collides with is looked up by what it claims: a job
// of 16,384 ranks may have a folder for each.
class FoundJobs {
 public:
  void Place(Folder& folder) {
    const std::vector<size_t> colliding = JobsThatCollide(folder);
    const auto fits = [&](size_t job) { return !std::binary_search(colliding.begin(), colliding.end(), job); };
    size_t home = 0;  // the first that fits
    for (const size_t job : colliding) home += job == home ? 1 : 0;
    // Prefer the job that already holds a folder above this one, the last of several.
    size_t above = SIZE_MAX;
    for (size_t slash = folder.name.find('/'); slash != std::string::npos; slash = folder.name.find('/', slash + 1)) {
      const auto found = jobs_of_.find(folder.name.substr(0, slash));
      if (found == jobs_of_.end() || !fits(found->second)) continue;
      above = above == SIZE_MAX ? found->second : std::max(above, found->second);
    }
    if (above != SIZE_MAX) home = above;
    if (home == jobs.size()) jobs.emplace_back();
    jobs[home].push_back(&folder);
    jobs_of_.emplace(folder.name, home);
    for (const auto& [claim, named] : folder.claims) claimants_[claim].push_back({&folder, home, named});
    if (folder.step_lines > 0) told_steps_.emplace(home, &folder);
    if (!folder.slurm_job.empty()) slurm_jobs_.emplace(folder.slurm_job, home);
  }

  std::vector<std::vector<Folder*>> jobs;

 private:
  struct Claimant {
    const Folder* folder;
    size_t job;
    bool named;
  };

  // Both claim the same rank by the same kind of file, and no communicator says that they are one. Sorted.
  std::vector<size_t> JobsThatCollide(const Folder& folder) const {
    std::vector<size_t> colliding;
    for (const auto& [claim, named] : folder.claims) {
      const auto found = claimants_.find(claim);
      if (found == claimants_.end()) continue;
      for (const auto& [other, job, other_named] : found->second)
        if (!AreOneRun(folder, named, *other, other_named) && !ShareCommunicator(*other, folder))
          colliding.push_back(job);
    }
    if (!folder.slurm_job.empty())
      for (const auto& [number, job] : slurm_jobs_)
        if (number != folder.slurm_job) colliding.push_back(job);
    for (const auto& [job, other] : told_steps_)
      if (AreOutOfStep(folder, *other) && !IsInside(folder.name, other->name) && !IsInside(other->name, folder.name) &&
          !AreOneRun(folder, false, *other, false) && !ShareCommunicator(*other, folder))
        colliding.push_back(job);
    std::sort(colliding.begin(), colliding.end());
    colliding.erase(std::unique(colliding.begin(), colliding.end()), colliding.end());
    return colliding;
  }

  std::map<std::pair<std::string, Rank>, std::vector<Claimant>> claimants_;
  std::unordered_map<std::string, size_t> jobs_of_;  // by name of a folder
  std::map<std::string_view, size_t> slurm_jobs_;
  std::map<size_t, const Folder*> told_steps_;  // by job, the first folder with output that tells steps
};

// The nearest folder above, or the folder itself, in which a run wrote down what it is.
void FindRun(const std::set<std::string, std::less<>>& runs, Folder& folder) {
  for (std::string_view name = folder.name;; name = FolderAbove(name)) {
    if (runs.contains(name)) {
      folder.run = std::string(name);
      folder.in_run = true;
      return;
    }
    if (name.empty()) return;
  }
}

// Black boxes of one folder that are tied together by communicators, and the time they tell of.
struct Circle {
  std::vector<size_t> members;
  std::set<Rank> ranks;
  int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;

  void Add(const Fragment& box, size_t index) {
    members.push_back(index);
    for (const Speaker& speaker : box.speakers)
      if (speaker.rank.known()) ranks.insert(speaker.rank);
    for (const CallStream& stream : box.streams)
      if (!stream.calls.empty() && stream.calls[0].enter_wall_ns != kNoTime)
        begin_ns = std::min(begin_ns, stream.calls[0].enter_wall_ns);
    for (const Pulse& pulse : box.pulses)
      if (pulse.last_beat_wall_ns != kNoTime) end_ns = std::max(end_ns, pulse.last_beat_wall_ns);
  }
  bool IsBeside(const Circle& other) const {
    return begin_ns < other.end_ns && other.begin_ns < end_ns &&
           std::any_of(ranks.begin(), ranks.end(), [&](Rank rank) { return other.ranks.contains(rank); });
  }
};

// By folder, in the order of their first files.
std::map<std::string, std::vector<Circle>> FindCircles(const std::vector<Fragment>& fragments) {
  std::vector<size_t> parent(fragments.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::map<std::pair<std::string, uint64_t>, size_t> first;
  for (size_t i = 0; i < fragments.size(); ++i) {
    if (fragments[i].format != "black_box") continue;
    for (const Group& group : fragments[i].groups) {
      if (group.comm_id == 0) continue;
      const size_t a =
          root(first.emplace(std::pair(std::string(FolderOf(fragments[i].path)), group.comm_id), i).first->second);
      const size_t b = root(i);
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<size_t, Circle> by_root;
  for (size_t i = 0; i < fragments.size(); ++i)
    if (fragments[i].format == "black_box" && !fragments[i].speakers.empty()) by_root[root(i)].Add(fragments[i], i);
  std::map<std::string, std::vector<Circle>> folders;
  for (auto& [at, circle] : by_root) folders[std::string(FolderOf(fragments[at].path))].push_back(std::move(circle));
  return folders;
}

// Two jobs may write into one folder at the same time, if both are called "local": the same ranks then beat at the same
// time in processes that share no communicator. Attempts that follow each other are one job, of which the latest
// counts.
std::map<size_t, std::string> FindTwins(const std::vector<Fragment>& fragments) {
  constexpr size_t kMostRuns = 64;  // each is compared with those before it
  std::map<size_t, std::string> twins;
  for (auto& [folder, circles] : FindCircles(fragments)) {
    for (size_t i = 1; i < std::min(circles.size(), kMostRuns); ++i) {
      const bool beside = std::any_of(circles.begin(), circles.begin() + static_cast<std::ptrdiff_t>(i),
                                      [&](const Circle& other) { return other.IsBeside(circles[i]); });
      if (!beside) continue;
      for (const size_t member : circles[i].members) twins[member] = folder + "/(run " + std::to_string(i + 1) + ")";
    }
  }
  return twins;
}

}  // namespace

std::vector<JobPart> SplitJobs(const std::vector<Fragment>& fragments) {
  std::map<std::string, Folder> folders;
  const std::map<size_t, std::string> twins = FindTwins(fragments);
  for (size_t i = 0; i < fragments.size(); ++i) {
    const auto twin = twins.find(i);
    const std::string_view slurm_job = SlurmJobOf(fragments[i].path);
    const std::string name = twin != twins.end()  ? twin->second
                             : !slurm_job.empty() ? SlurmLabel(fragments[i].path)
                                                  : std::string(FolderOf(fragments[i].path));
    Folder& folder = folders[name];
    folder.name = name;
    folder.slurm_job = slurm_job;
    folder.members.push_back(i);
    Claim(fragments[i], folder);
  }
  std::set<std::string, std::less<>> runs;
  for (const Fragment& fragment : fragments)
    if (fragment.tops_a_run) runs.emplace(FolderOf(fragment.path));
  if (!runs.empty())
    for (auto& [name, folder] : folders) FindRun(runs, folder);
  // A folder without ranks joins the nearest folder above it, else the first job.
  FoundJobs found;
  std::vector<Folder*> homeless;
  for (auto& [name, folder] : folders) {
    if (folder.claims.empty() && folder.step_lines == 0 && folder.slurm_job.empty())
      homeless.push_back(&folder);
    else
      found.Place(folder);
  }
  std::vector<std::vector<Folder*>>& jobs = found.jobs;
  if (jobs.empty()) jobs.emplace_back();
  std::vector<JobPart> parts(jobs.size());
  for (size_t job = 0; job < jobs.size(); ++job) {
    for (const Folder* folder : jobs[job]) {
      parts[job].members.insert(parts[job].members.end(), folder->members.begin(), folder->members.end());
      if (jobs.size() > 1 && parts[job].label.empty()) parts[job].label = folder->name.empty() ? "." : folder->name;
    }
  }
  std::unordered_map<std::string_view, size_t> job_of;
  for (size_t job = 0; job < jobs.size(); ++job)
    for (const Folder* folder : jobs[job]) job_of.emplace(folder->name, job);
  for (Folder* folder : homeless) {
    // A fragment can be moved into one job only: that of the nearest folder above it, else the first that it may be of.
    size_t home = 0;
    while (home < jobs.size() && IsOfAnotherJob(*folder, jobs[home])) ++home;
    if (home == jobs.size()) {
      if (jobs.size() == 1 && parts[0].label.empty())
        parts[0].label = jobs[0].front()->name.empty() ? "." : jobs[0].front()->name;
      jobs.push_back({folder});
      parts.push_back({folder->name, {}});
      parts.back().members = folder->members;
      continue;
    }
    for (std::string_view name = folder->name; !name.empty(); name = FolderAbove(name)) {
      const auto above = job_of.find(name);
      if (above == job_of.end()) continue;
      home = above->second;
      break;
    }
    parts[home].members.insert(parts[home].members.end(), folder->members.begin(), folder->members.end());
  }
  for (JobPart& part : parts) std::sort(part.members.begin(), part.members.end());
  return parts;
}

}  // namespace tacet
