// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/postmortem/postmortem.h"

namespace tacet {

// The parts of a postmortem that say how the run was set up, beside a good run.
DocumentSection BaselineSection(const RunRecord& run, const RunRecord* baseline);
DocumentSection VariablesSection(const RunRecord& run, const RunRecord* baseline);
DocumentSection RingsSection(const RunRecord& run, const RunRecord* baseline);

std::string CleanWords(std::string_view text);  // without secrets and control characters
std::vector<std::string> CleanAll(const std::vector<std::string>& texts);
std::string Sentence(std::string_view text);  // headlines have no full stop; on a page of sentences they need one
std::string StatusWord(const Report& report);  // as 'tacet diagnose' calls it: "hang", "no fault found"
std::string DurationText(int64_t ns);
std::string EndText(const RunManifest& manifest);

}  // namespace tacet
