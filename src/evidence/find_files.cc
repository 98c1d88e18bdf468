// SPDX-License-Identifier: Apache-2.0
#include "evidence/find_files.h"

#include <algorithm>
#include <filesystem>

namespace tacet {
namespace fs = std::filesystem;
namespace {

bool IsInside(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return false;
  const fs::path real_root = fs::canonical(root, error);
  const auto [end, unused] = std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end());
  return end == real_root.end();
}

void WalkFolder(const fs::path& root, const std::string& shown_prefix, std::vector<FoundFile>& out) {
  std::error_code error;
  fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, error), end;
  if (error) {
    out.push_back({root.string(), shown_prefix.empty() ? root.string() : shown_prefix, "cannot list the folder: " + error.message()});
    return;
  }
  for (; it != end; it.increment(error)) {
    const fs::path& path = it->path();
    const std::string name = path.filename().string();
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
      if (name.starts_with(".")) it.disable_recursion_pending();
      continue;
    }
    FoundFile file{path.string(), shown_prefix + path.lexically_relative(root).string(), ""};
    if (it->is_symlink(ignored)) {
      if (fs::is_directory(path, ignored)) continue;
      if (!IsInside(root, path)) file.problem = "is a link that leads outside the folder, and is not followed";
    }
    out.push_back(std::move(file));
  }
}

}  // namespace

Result<std::vector<FoundFile>> FindFiles(const std::vector<std::string>& arguments) {
  std::vector<FoundFile> files;
  for (const std::string& argument : arguments) {
    std::error_code error;
    const fs::file_status status = fs::status(argument, error);
    if (status.type() == fs::file_type::not_found)
      return Error{"'" + argument + "': no such file or folder", "name a folder of logs and dumps, or '-' for standard input"};
    if (error) return Error{"'" + argument + "': " + error.message(), "check the path and its permissions"};
    const fs::path path = fs::path(argument).lexically_normal();
    if (fs::is_directory(status)) {
      const fs::path name = path.filename().empty() ? path.parent_path().filename() : path.filename();
      WalkFolder(path, arguments.size() > 1 ? name.string() + "/" : "", files);
    } else {
      files.push_back({argument, path.filename().string(), ""});
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.shown < b.shown; });
  return files;
}

}  // namespace tacet
