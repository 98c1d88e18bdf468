// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/load.h"
#include "model/fragment.h"

namespace tacet {

enum class ArchiveKind { none, tar, zip };

// From the bytes, never from the name; a tar may be compressed. What torch.save wrote is a zip too, but none to open.
ArchiveKind DetectArchive(std::string_view bytes);

// What may still be unpacked of one file that was named or found, archives inside it included.
struct ArchiveBudget {
  uint64_t bytes = 0;
  size_t members = 0;
};

ArchiveBudget BudgetFor(std::string_view archive, const LoadOptions& options);

// A file inside an archive; `path` is that of the archive, a slash, and its own name made safe.
struct ArchivedFile {
  std::string path, name;  // `name` as the archive has it
  std::string bytes;
  int64_t modified_wall_ns = kNoTime;
  bool cut = false;
  std::vector<Diagnostic> notes;
};

// "../../etc/x" -> "etc/x", control characters replaced. Empty for what a walk through folders skips too: files in
// hidden folders, and the "._x" that macOS adds.
std::string SafeMemberName(std::string_view name);

// Hands out the files one after the other: memory holds one, not the whole archive. Nothing is written to disk. What
// could not be read is in the fragment, which tells of the archive itself; it is worth showing only with diagnostics.
Fragment WalkArchive(std::string_view path, std::string_view bytes, ArchiveKind kind, const LoadOptions& options,
                     ArchiveBudget& budget, const std::function<void(ArchivedFile&&)>& take);

// Reads one file of an archive that is itself no archive.
using MemberReader = std::function<Fragment(const ArchivedFile&, const LoadOptions&)>;

// All files of an archive, and those of archives inside it, one level deep. Several are read at once.
void ReadArchive(std::string_view path, std::string_view bytes, ArchiveKind kind, const LoadOptions& options,
                 const MemberReader& read, std::vector<Fragment>& out);

}  // namespace tacet
