// SPDX-License-Identifier: Apache-2.0
#include "evidence/load_archive.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/parallel.h"

namespace tacet {
namespace {

// So many are read at once: enough for all cores, little beside what one file may take.
constexpr size_t kBatchFiles = 128;
constexpr uint64_t kBatchBytes = uint64_t{64} << 20;

class ArchiveLoad {
 public:
  ArchiveLoad(const LoadOptions& options, const MemberReader& read, ArchiveBudget budget, std::vector<Fragment>& out)
      : options_(options), read_(read), budget_(budget), out_(out) {}

  void Read(std::string_view path, std::string_view bytes, ArchiveKind kind, int depth) {
    Fragment about = WalkArchive(path, bytes, kind, options_, budget_, [&](ArchivedFile&& file) {
      const ArchiveKind inner = DetectArchive(file.bytes);
      if (inner == ArchiveKind::none)
        Add(std::move(file));
      else if (depth == 0)
        Descend(std::move(file), inner);
      else
        out_.push_back(TooDeep(file));
    });
    Flush();
    if (!about.diagnostics.empty()) out_.push_back(std::move(about));
  }

 private:
  void Descend(ArchivedFile&& file, ArchiveKind kind) {
    Read(file.path, file.bytes, kind, 1);
    if (file.notes.empty()) return;
    Fragment about;
    about.path = file.path;
    about.format = "archive";
    about.diagnostics = std::move(file.notes);
    out_.push_back(std::move(about));
  }

  static Fragment TooDeep(const ArchivedFile& file) {
    Fragment fragment;
    fragment.path = file.path;
    fragment.format = "archive";
    fragment.bytes = {file.bytes.size(), 0, 0, file.bytes.size()};
    fragment.Note(DiagnosticSeverity::warning, "nested-archive",
                  "is an archive inside an archive inside an archive, and is not opened", {}, "unpack the outer one");
    return fragment;
  }

  void Add(ArchivedFile&& file) {
    batch_bytes_ += file.bytes.size();
    batch_.push_back(std::move(file));
    if (batch_.size() >= kBatchFiles || batch_bytes_ >= kBatchBytes) Flush();
  }

  void Flush() {
    std::vector<Fragment> fragments(batch_.size());
    // Compressed files inside an archive count towards its limit too.
    LoadOptions options = options_;
    options.max_file_bytes = std::max<uint64_t>(1, std::min(options.max_file_bytes, budget_.bytes));
    ParallelFor(batch_.size(), options_.threads, [&](size_t i) {
      fragments[i] = read_(batch_[i], options);
      fragments[i].modified_wall_ns = batch_[i].modified_wall_ns;
      for (Diagnostic& note : batch_[i].notes) fragments[i].diagnostics.push_back(std::move(note));
    });
    for (size_t i = 0; i < batch_.size(); ++i) {
      const uint64_t grown =
          fragments[i].bytes.total - std::min<uint64_t>(fragments[i].bytes.total, batch_[i].bytes.size());
      budget_.bytes -= std::min(budget_.bytes, grown);
      Keep(batch_[i].path + '\0' + batch_[i].name, std::move(fragments[i]));
    }
    batch_.clear();
    batch_bytes_ = 0;
  }

  // A file that was added again (tar -r) stands for the one before it.
  void Keep(std::string key, Fragment&& fragment) {
    const auto [place, added] = places_.emplace(std::move(key), out_.size());
    if (added) {
      out_.push_back(std::move(fragment));
      return;
    }
    fragment.Note(DiagnosticSeverity::note, "added-again",
                  "the archive contains it more than once; the last one was read");
    out_[place->second] = std::move(fragment);
  }

  const LoadOptions& options_;
  const MemberReader& read_;
  ArchiveBudget budget_;
  std::vector<Fragment>& out_;
  std::vector<ArchivedFile> batch_;
  uint64_t batch_bytes_ = 0;
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace

void ReadArchive(std::string_view path, std::string_view bytes, ArchiveKind kind, const LoadOptions& options,
                 const MemberReader& read, std::vector<Fragment>& out) {
  ArchiveLoad(options, read, BudgetFor(bytes, options), out).Read(path, bytes, kind, 0);
}

}  // namespace tacet
