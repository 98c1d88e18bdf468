// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rules/findings/space_use_finding.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {

// "/lustre" of "/lustre/exp/ckpt/x.pt"; empty for a path without a folder.
static std::string TopFolder(const std::string& path) {
  if (!path.starts_with('/')) return "";
  const size_t end = path.find('/', 1);
  return end == std::string::npos ? "" : path.substr(0, end);
}

static std::string FolderOf(const std::string& path) {
  const size_t end = path.rfind('/');
  return end == std::string::npos || end == 0 ? "PATH" : path.substr(0, end);
}

// A quota belongs to a user, a group or a project and to a file system, not to a host.
static std::string QuotaStep(const std::string& path) {
  const std::string top = TopFolder(path);
  const std::string rest = "; delete old checkpoints, or ask for more.";
  if (top.starts_with("/lustre"))
    return "Show the quota: lfs quota -h -u $USER " + top + " (-g GROUP or -p PROJECT for theirs)" + rest;
  if (top.starts_with("/gpfs")) return "Show the quota: mmlsquota --block-size auto (-g GROUP, -j FILESET)" + rest;
  return "Show the quota of " + (top.empty() ? "that file system" : top) +
         ": quota -s, on Lustre lfs quota -h -u $USER, on GPFS mmlsquota; quotas of a group or a project count too" +
         rest;
}

static std::vector<std::string> SpaceSteps(const std::string& path, SpaceLimit limit, const ToldEvents& told) {
  std::vector<std::string> steps;
  const std::string where = told.hosts.size() == 1   ? "On " + *told.hosts.begin() + ": "
                            : told.ranks.size() == 1 ? "On the host of " + RankWords(told.ranks) + ": "
                                                     : std::string("On the host that reports it: ");
  const std::string folder = FolderOf(path), top = TopFolder(path);
  const bool lustre = top.starts_with("/lustre");
  if (limit == SpaceLimit::quota)
    steps.push_back(QuotaStep(path));
  else
    steps.push_back((lustre ? "On any host that mounts it: lfs df -h " + top + " and lfs df -i " + top +
                                  " (one full OST is enough, whatever df shows), and lfs quota -h -u $USER " + top
                            : where + "df -h " + folder + " and df -i " + folder +
                                  (limit == SpaceLimit::not_told ? ", and the quota (quota -s, lfs quota)" : "")) +
                    "; remove old checkpoints, core dumps and caches.");
  steps.push_back("Write checkpoints elsewhere, and keep only the last few (save_total_limit, keep_last).");
  const bool cache = path.starts_with("/tmp") || path.find("/.cache") != std::string::npos;
  if (path.empty() || cache)
    steps.push_back(
        "/tmp and ~/.cache (Triton, torch inductor, Hugging Face) fill up unnoticed: move them with TMPDIR, "
        "TRITON_CACHE_DIR, HF_HOME.");
  return steps;
}

// The program says behind the error that it is done: what it could not write is missing, and nothing else.
static const Event* DoneBehind(const Case& facts, const Event& error) {
  const auto& events = facts.incident.events;
  const auto done = std::find_if(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == EventKind::process_finished && event.As<ProcessFinish>().said &&
           event.source.file == error.source.file && event.source.line > error.source.line;
  });
  return done == events.end() ? nullptr : &*done;
}

static void TellDone(const Event& done, Finding& finding) {
  constexpr size_t kMostQuoted = 80;
  finding.status = Status::undetermined;
  finding.severity = Severity::warning;
  finding.headline += ". After that the program says that it is done ('" + MessageWords(done.text, kMostQuoted) + "')";
  finding.fix.insert(finding.fix.begin(),
                     "Check what the program should have saved at its end: that file is missing or incomplete.");
}

static RuleAnswer JudgeDiskFull(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents told = CollectTold(facts, [](const Event& e) { return e.kind == EventKind::disk_full; });
  if (!told) {
    if (auto full = FullSpaceFinding(facts, false)) answer.findings.push_back(std::move(*full));
    return answer;
  }
  const Event* lead = told.events.front();
  for (const Event* event : told.events)  // whoever names the path tells most
    if (lead->As<NoSpace>().path.empty() && !event->As<NoSpace>().path.empty()) lead = event;
  const auto& [full, limit] = lead->As<NoSpace>();
  Finding finding = ToldFinding(facts, "disk-full", told, "the file could not be written");
  const bool quota = limit == SpaceLimit::quota;
  const std::string path = full.empty() ? "" : " at " + full;
  const std::string who = TellerWords(told) + (told.ranks.size() > 1 ? " cannot write" : " could not write");
  if (limit == SpaceLimit::not_told) {
    finding.confidence = Confidence::likely;
    finding.headline = "a checkpoint could not be written completely (" + TellerWords(told) +
                       "): the disk is most likely full, or the quota used up" + RankUnknownWords(told);
  } else {
    finding.headline =
        (quota ? "the disk quota is used up" : "the disk is full") + path + ": " + who + RankUnknownWords(told);
  }
  finding.fix = SpaceSteps(full, limit, told);
  if (const Event* done = DoneBehind(facts, *lead)) TellDone(*done, finding);
  AskWhichRank(told, answer);
  if (full.empty())
    answer.open.push_back({"Which file system is full?", "df -h and df -i on that host, quota -s of the user"});
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kDiskFullRule;
const Rule kDiskFullRule = {
    "disk-full",
    "A disk or quota is full",
    "the rank's output or df -h",
    "A file could not be written because its file system has no space or no inodes left, or the user's quota is used "
    "up. It is usually a checkpoint, which often only one rank writes: the others wait for it and time out.",
    "A full /dev/shm is a separate cause (shared-memory-full). A job that catches the error and continues was not "
    "ended by it.",
    {"Full: df -h PATH and df -i PATH on that host, on Lustre lfs df -h PATH; remove old checkpoints, core dumps and "
     "caches.",
     "Quota: quota -s, on Lustre lfs quota -h -u $USER PATH, on GPFS mmlsquota; delete old checkpoints, or ask for "
     "more.",
     "Write checkpoints elsewhere, and keep only the last few (save_total_limit, keep_last).",
     "/tmp and ~/.cache (Triton, torch inductor, Hugging Face) fill up unnoticed: move them with TMPDIR, "
     "TRITON_CACHE_DIR, HF_HOME."},
    {"Check free space before each checkpoint, and delete the oldest one first."},
    JudgeDiskFull};

}  // namespace tacet
