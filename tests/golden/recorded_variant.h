// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "incident_truth.h"
#include "recorded_files.h"

namespace tacet {

// What a file of a recording is, told by its name.
enum class FileKind { record, nccl_log, output, stacks, kernel_log, ras, other };
FileKind KindOf(std::string_view path);
std::string_view Name(FileKind kind);
int RankInName(std::string_view path);  // -1: none

// The same incident as another site would have kept it, or a part of it. The truth changes along where ranks do.
struct Variant {
  std::string name;
  bool lossless = true;  // all the evidence is still there: the answer must not be withdrawn
  // Empty where it does not apply to this recording.
  std::function<std::optional<std::vector<RecordedFile>>(const std::vector<RecordedFile>&, IncidentTruth&)> make;
  std::set<FileKind> cut = {};  // of these kinds some files end early
};

// `healthy` is a recording of another job that lies beside, `older` one that ended before the incident began.
std::vector<Variant> AllVariants(const std::vector<RecordedFile>& healthy, const std::vector<RecordedFile>& older);

// Files as they are on disk, unpacked; traces and other large files that tell only of speed are left out.
std::vector<RecordedFile> ReadUnpacked(const std::filesystem::path& folder);

}  // namespace tacet
