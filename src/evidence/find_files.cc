// SPDX-License-Identifier: Apache-2.0
#include "evidence/find_files.h"

#include <algorithm>
#include <filesystem>

namespace tacet {
namespace fs = std::filesystem;
namespace {

// Evidence lies a few folders deep; what goes on for ever was made to.
constexpr size_t kDeepest = 100;

bool IsInside(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return false;
  const fs::path real_root = fs::canonical(root, error);
  const auto [end, unused] = std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end());
  return end == real_root.end();
}

std::string ProblemOfLink(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const bool exists = fs::exists(fs::status(path, error));
  if (error == std::errc::too_many_symbolic_link_levels) return "is a link that points back to itself";
  if (!exists) return "is a broken link";
  return IsInside(root, path) ? "" : "is a link that points outside the folder, and is not followed";
}

// Folder by folder, none of which stays open: a tree may be deeper than a process may have open files, and a folder
// that cannot be listed costs that folder only.
class FolderWalk {
 public:
  FolderWalk(fs::path root, std::string shown_prefix, std::vector<FoundFile>& out)
      : root_(std::move(root)), shown_prefix_(std::move(shown_prefix)), out_(out) {}

  void Walk() {
    const size_t before = out_.size();
    waiting_.push_back({root_, 0});
    while (!waiting_.empty()) {
      const Folder folder = std::move(waiting_.back());
      waiting_.pop_back();
      List(folder);
    }
    if (out_.size() == before)
      Refuse(root_, "the folder holds no files", "name the folder that holds the logs and dumps");
  }

 private:
  struct Folder {
    fs::path path;
    size_t depth;
  };

  std::string Shown(const fs::path& path) const {
    const std::string below = path == root_ ? "" : path.lexically_relative(root_).string();
    if (!below.empty()) return shown_prefix_ + below;
    return shown_prefix_.empty() ? root_.string() : shown_prefix_.substr(0, shown_prefix_.size() - 1);
  }

  void Refuse(const fs::path& path, std::string problem, std::string hint) {
    out_.push_back({path.string(), Shown(path), std::move(problem), std::move(hint)});
  }

  void List(const Folder& folder) {
    std::error_code error;
    fs::directory_iterator it(folder.path, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) Add(*it, folder.depth);
    if (error)
      Refuse(folder.path, "is a folder that cannot be listed: " + error.message(),
             error == std::errc::permission_denied ? "check the folder's permissions" : "check the folder");
  }

  void Add(const fs::directory_entry& entry, size_t depth) {
    const fs::path& path = entry.path();
    std::error_code ignored;
    const bool link = entry.is_symlink(ignored);
    if (entry.is_directory(ignored)) {
      if (link || path.filename().string().starts_with(".")) return;
      if (depth == kDeepest)
        Refuse(path, "lies more than " + std::to_string(kDeepest) + " folders deep, and is not read",
               "name that folder itself");
      else
        waiting_.push_back({path, depth + 1});
      return;
    }
    out_.push_back({path.string(), Shown(path), link ? ProblemOfLink(root_, path) : "", ""});
  }

  const fs::path root_;
  const std::string shown_prefix_;
  std::vector<FoundFile>& out_;
  std::vector<Folder> waiting_;
};

}  // namespace

std::vector<FoundFile> FindFiles(const std::vector<std::string>& arguments) {
  std::vector<FoundFile> files;
  for (const std::string& argument : arguments) {
    std::error_code error;
    const fs::file_status status = fs::status(argument, error);
    const fs::path path = fs::path(argument).lexically_normal();
    if (status.type() == fs::file_type::not_found) {
      files.push_back({argument, argument, "no such file or folder",
                       "name a file or a folder of logs and dumps, or '-' for standard input"});
    } else if (error) {
      files.push_back({argument, argument, error.message(), "check the path and its permissions"});
    } else if (fs::is_directory(status)) {
      const fs::path name = path.filename().empty() ? path.parent_path().filename() : path.filename();
      FolderWalk(path, arguments.size() > 1 ? name.string() + "/" : "", files).Walk();
    } else {
      files.push_back({argument, path.filename().string(), "", ""});
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.shown < b.shown; });
  return files;
}

}  // namespace tacet
