// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/topology_report.h"
#include "rules/finding.h"

namespace tacet {

// The report as plain values: every id is resolved, every file a path. Renderers turn it into bytes and think no more.

struct CitedEvidence {
  std::string file;  // relative to the argument; empty when the statement rests on an absence
  uint32_t line = 0;
  uint64_t offset = 0;
  std::string excerpt;  // the line, what matters of it, or a record put in words
  std::string says;
  std::string quote;  // the cited line as it stands in the file; empty where it has no lines or was not read again
};

// Those affected by a finding wait for the guilty; by a degraded transport or wrong numbers they are affected and wait
// for nobody. Of a crash they wait where an operation is known that they are in; others have seen it and ended.
inline bool AffectedWait(Status status, bool in_operation = true) {
  if (status == Status::crash) return in_operation;
  return status == Status::hang || status == Status::slow;
}

struct ReportGroup {
  std::string name, description;
  std::vector<int> ranks;
};

// Whom a finding is about: a rank, or a process or host where no rank is known.
struct ReportSubject {
  int rank = -1;
  std::string host;
  int64_t pid = -1;
  int device = -1;
};

struct ReportFinding {
  std::string cause, title;
  Status status = Status::undetermined;
  Severity severity = Severity::note;
  Confidence confidence = Confidence::possible;
  std::vector<int> ranks, affected_ranks;
  std::vector<ReportSubject> subjects;
  std::string explained_by;  // the cause of which this is a consequence
  std::optional<ReportGroup> group;
  std::optional<OperationRef> operation;
  std::string headline, explanation;
  std::string meaning, look_alikes;  // the two parts of an explanation that is the cause's own, and not of this run
  std::vector<CitedEvidence> evidence;
  std::vector<std::string> fix, prevent;
  std::string job;  // label of the job when the input holds several
};

struct ReportInput {
  std::string file, format;
  int rank = -1;
  uint64_t bytes = 0, understood = 0, ignored = 0, not_understood = 0;
};

struct ReportDiagnostic {
  std::string severity, code, message, file, hint;
  uint32_t line = 0;
  uint64_t count = 1;              // equal ones are folded
  std::vector<std::string> files;  // all that it was said of, `file` first; no more than kMostFiles
  static constexpr size_t kMostFiles = 20;
};

// One row of the table of ranks: what is known of each at a glance.
struct ReportRank {
  int rank = -1;
  std::string host;
  int64_t pid = -1;
  std::string role;                         // "guilty", "suspect", "waits", "silent", "ok", ""
  std::string last_operation;               // "all_reduce #33 on default_pg: started"
  std::string doing;                        // "load_next_batch (train.py:124)"
  std::string last_sign;                    // "00:16:08" or ""
  std::vector<std::string> evidence_kinds;  // formats that speak of it
  bool of_verdict = false;                  // the verdict names it
};

struct ReportVerdict {
  Status status = Status::undetermined;
  std::string cause;  // empty: none
  std::vector<int> ranks;
  Confidence confidence = Confidence::possible;
  std::string headline;
  std::vector<ReportSubject> subjects;
  bool progresses = false;  // of an undetermined one: no line reports a fault, and the job was seen to make progress
};

struct ReportJob {
  std::string label;
  int64_t world_size = -1;
  std::vector<int> ranks_seen;
  std::vector<std::string> hosts;
  std::vector<ReportGroup> groups;
  std::vector<std::pair<std::string, std::string>> versions;  // {"nccl", "2.28.9"}
  bool world_told = true;  // of world_size: false where no line tells it, and it is at least this
  // Its verdict in short, for the table of several jobs.
  Status status = Status::undetermined;
  std::string cause;
  std::vector<int> culprits;
};

// An edge of the wait graph for the picture: `from` waits for `to`.
struct ReportWait {
  int from = -1, to = -1;
  std::string where;  // "all_reduce #33 on default_pg"
};

// What speaks for the verdict, or against it.
struct ReportClaim {
  int rank = -1;
  bool supports = true;
  std::string reading;   // "stuck on the host"; or the cause
  std::string strength;  // "proof", "strong", "weak"; empty for evidence of the finding itself
  std::string witness;   // who says it: "self", "peer", "launcher", "kernel", "scheduler", "tool",
                         // "reporter"; empty likewise
  CitedEvidence because;
};

// A cause that was not named, and why.
struct ReportRival {
  std::string cause;
  std::vector<int> ranks;
  bool found = false;  // a rule found it; else nothing shows it
  std::string because;
};

struct ReportWhy {
  CitedEvidence status;
  std::vector<ReportClaim> claims;
  std::vector<ReportRival> rivals;
};

struct Report {
  ReportVerdict verdict;
  std::vector<ReportFinding> findings;  // findings[0] carries the verdict
  std::vector<ReportJob> jobs;          // the first is the verdict's
  std::vector<ReportRank> ranks;
  std::vector<ReportWait> waits;
  std::vector<ReportInput> inputs;
  std::vector<ReportDiagnostic> diagnostics;
  std::vector<CannotTell> cannot_tell;
  std::vector<std::string> assumptions;
  std::optional<ReportWhy> why;            // where it was asked for
  std::optional<TopologyReport> topology;  // where it was asked for
  double seconds = 0;                      // how long the work took

  // Written once, in report.cc: whoever holds one would else compile all its parts again.
  Report();
  Report(const Report&);
  Report(Report&&) noexcept;
  Report& operator=(const Report&);
  Report& operator=(Report&&) noexcept;
  ~Report();
};

}  // namespace tacet
