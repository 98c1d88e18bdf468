// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "rules/space_use_finding.h"
#include "rules/told_finding.h"

namespace tacet {

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
    "up. Most often it is a checkpoint, and most often only one rank writes it: the others wait for it and time out.",
    "A full /dev/shm has a cause of its own (shared-memory-full). A job that catches the error and continues was not "
    "ended by it.",
    {"On that host: df -h PATH, df -i PATH, quota -s; remove old checkpoints, core dumps and caches.",
     "Write checkpoints elsewhere, and keep only the last few (save_total_limit, keep_last).",
     "/tmp and ~/.cache (Triton, torch inductor, Hugging Face) fill up unnoticed: move them with TMPDIR, "
     "TRITON_CACHE_DIR, HF_HOME."},
    {"Check free space before each checkpoint, and delete the oldest one first."},
    JudgeDiskFull};

}  // namespace tacet
