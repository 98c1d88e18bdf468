// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/source_ref.h"
#include "model/ids.h"
#include "model/operation.h"
#include "model/subject.h"

namespace tacet {

enum class Status { hang, crash, corrupt, slow, degraded, healthy, undetermined };
enum class Severity { critical, warning, note };
enum class Confidence { certain, likely, possible };

std::string_view Name(Status status);
// The job stood still, crashed or computed nonsense, whoever is responsible: a gate must not pass on it.
bool IsFailure(Status status);
std::string_view Name(Severity severity);
std::string_view Name(Confidence confidence);

// One cited place: what stands there, and what it says about the case.
struct EvidenceItem {
  SourceRef source;
  std::string excerpt;  // the line itself, or a record put in words; may be empty
  std::string says;     // what it proves
};

struct OperationRef {
  OpKind kind = OpKind::unknown;
  int64_t seq = -1;
  int64_t bytes = -1;
};

// What a rule found. The texts "explanation", "fix" and "prevent" come from the rule unless the finding sharpens them.
struct Finding {
  std::string cause;
  Status status = Status::undetermined;
  Severity severity = Severity::warning;
  Confidence confidence = Confidence::possible;
  std::vector<Rank> ranks;           // guilty
  bool ranks_suffer = false;         // something outside of these ranks is to blame: a host's setting, a service
  std::vector<Rank> affected_ranks;  // who waits
  std::vector<Subject> subjects;     // whom it is about, where no rank is known: a process, a host
  GroupIndex group = GroupIndex::none;
  std::optional<OperationRef> operation;
  std::string title;     // where that of the cause does not fit
  std::string headline;  // one sentence
  std::string explanation;
  std::vector<EvidenceItem> evidence;  // best first
  std::vector<std::string> fix, prevent;
  std::string explained_by;  // the cause of which this is a consequence; empty: none
};

// A question the evidence leaves open, and what to capture to answer it.
struct CannotTell {
  std::string question;
  std::string missing;
};

}  // namespace tacet
