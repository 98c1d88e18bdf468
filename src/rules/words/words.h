// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/incident.h"
#include "rules/finding.h"

namespace tacet {

// "rank 3", "ranks 0-2 and 5", "a rank that the log does not name".
std::string RankWords(const std::vector<Rank>& ranks);

// "rank 3's process is gone", "the processes of ranks 1 and 4 are gone".
std::string GoneWords(const std::vector<Rank>& ranks);
// "all_reduce #33 on default_pg".
std::string OperationWords(const Incident& incident, const Call& call);
// "all_reduce of 262144 float32", with reduction where known.
std::string ShapeWords(const Call& call);
// "1.5 s", "10 min".
std::string DurationWords(int64_t ns);
// "1.23 s", "565 ms": of a time that is compared with another one, with three digits.
std::string MeasuredWords(int64_t ns);

// Advice that can be typed: of one rank whose process is known, "on its host ... -p PID" becomes "on node-7 ... -p
// 4711"; of several ranks "on node-7", or "on their hosts".
std::string NamePlaces(const Incident& incident, const std::vector<Rank>& ranks, std::string advice);

// Cited places.
EvidenceItem CiteCall(const Incident& incident, const CallStream& stream, const Call& call, std::string says);
EvidenceItem CiteEvent(const Event& event, std::string says);
EvidenceItem CiteStack(const Incident& incident, const ThreadStack& thread, std::string says);
// The whole record of a rank, where the point is what does not stand in it.
EvidenceItem CiteFile(FileId file, std::string says);
// An absence: no file can be cited.
EvidenceItem CiteAbsence(std::string says);

// "rank 3 waits" -> "Rank 3 waits".
std::string Capitalised(std::string sentence);

OperationRef RefOf(const Call& call);

// The user's own frame of a recorded call: "train_step (train.py:88)"; empty without a stack.
std::string CallSiteWords(const Incident& incident, const Call& call);
// The line from which a call came that another, issued in the same line, did not come from: "evaluate (train.py:42)".
// Empty where both came the same way, or were issued in different lines.
std::string CallerWords(const Incident& incident, const Call& call, const Call& other);

}  // namespace tacet
