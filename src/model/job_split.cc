// SPDX-License-Identifier: Apache-2.0
#include "model/job_split.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/file_rank.h"

namespace tacet {
namespace {

struct Folder {
  std::string name;
  std::vector<size_t> members;
  std::set<std::pair<std::string, Rank>> claims;  // (format, rank)
  std::set<uint64_t> comms;
  size_t job = SIZE_MAX;
};

// The folder that makes a file part of a job. Folders that merely number a rank ("attempt_0/3/stdout.log", "rank3/…",
// "inspector/…" beside others) are not jobs of their own: they only become so when their claims collide.
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

void Claim(const Fragment& fragment, Folder& folder) {
  for (const Speaker& speaker : fragment.speakers) {
    if (speaker.rank.known()) folder.claims.insert({fragment.format, speaker.rank});
  }
  for (const Group& group : fragment.groups)
    if (group.comm_id != 0) folder.comms.insert(group.comm_id);
}

bool Collide(const Folder& a, const Folder& b) {
  const bool share_comm =
      std::any_of(a.comms.begin(), a.comms.end(), [&](uint64_t id) { return b.comms.contains(id); });
  if (share_comm) return false;
  return std::any_of(a.claims.begin(), a.claims.end(), [&](const auto& claim) { return b.claims.contains(claim); });
}

}  // namespace

std::vector<JobPart> SplitJobs(const std::vector<Fragment>& fragments) {
  std::map<std::string, Folder> folders;
  for (size_t i = 0; i < fragments.size(); ++i) {
    Folder& folder = folders[FolderOf(fragments[i].path)];
    folder.name = FolderOf(fragments[i].path);
    folder.members.push_back(i);
    Claim(fragments[i], folder);
  }
  // A folder without ranks joins the nearest folder above it, else the first job.
  std::vector<std::vector<Folder*>> jobs;
  std::vector<Folder*> homeless;
  for (auto& [name, folder] : folders) {
    if (folder.claims.empty()) {
      homeless.push_back(&folder);
      continue;
    }
    size_t home = SIZE_MAX;
    for (size_t job = 0; job < jobs.size() && home == SIZE_MAX; ++job) {
      const bool fits =
          std::none_of(jobs[job].begin(), jobs[job].end(), [&](const Folder* f) { return Collide(*f, folder); });
      // Prefer the job that already holds a folder above this one.
      if (fits) home = job;
    }
    for (size_t job = 0; job < jobs.size(); ++job) {
      const bool above = std::any_of(jobs[job].begin(), jobs[job].end(), [&, &name = name](const Folder* f) {
        return !f->name.empty() && name.starts_with(f->name + "/");
      });
      const bool fits =
          std::none_of(jobs[job].begin(), jobs[job].end(), [&](const Folder* f) { return Collide(*f, folder); });
      if (above && fits) home = job;
    }
    if (home == SIZE_MAX) {
      home = jobs.size();
      jobs.emplace_back();
    }
    jobs[home].push_back(&folder);
  }
  if (jobs.empty()) jobs.emplace_back();
  std::vector<JobPart> parts(jobs.size());
  for (size_t job = 0; job < jobs.size(); ++job) {
    for (const Folder* folder : jobs[job]) {
      parts[job].members.insert(parts[job].members.end(), folder->members.begin(), folder->members.end());
      if (jobs.size() > 1 && parts[job].label.empty()) parts[job].label = folder->name.empty() ? "." : folder->name;
    }
  }
  for (const Folder* folder : homeless) {
    // A fragment can be moved into one job only: that of the nearest folder above it, else the first.
    size_t home = 0, nearest = 0;
    for (size_t job = 0; job < jobs.size(); ++job) {
      for (const Folder* f : jobs[job]) {
        const bool above = !f->name.empty() && (folder->name == f->name || folder->name.starts_with(f->name + "/"));
        if (!above || f->name.size() <= nearest) continue;
        home = job;
        nearest = f->name.size();
      }
    }
    parts[home].members.insert(parts[home].members.end(), folder->members.begin(), folder->members.end());
  }
  for (JobPart& part : parts) std::sort(part.members.begin(), part.members.end());
  return parts;
}

}  // namespace tacet
