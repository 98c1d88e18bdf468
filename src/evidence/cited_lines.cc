// SPDX-License-Identifier: Apache-2.0
#include "evidence/cited_lines.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/decompress.h"
#include "base/launcher_prefix.h"

namespace tacet {
namespace {

// What lies behind this in a compressed file is not quoted.
constexpr size_t kMostUnpacked = size_t{64} << 20;
// A longer line is a record of its own kind (a trace in one line), not something to read.
constexpr size_t kMostLine = 4096, kMostQuoted = 500;
// The number of a line is what the report shows, so it decides; in larger texts counting takes too long.
constexpr size_t kMostCounted = size_t{16} << 20;

bool IsRegularFile(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool LeavesItsFolder(std::string_view path) {
  return path == ".." || path.starts_with("../") || path.find("/../") != std::string_view::npos ||
         path.ends_with("/..");
}

// Cut between characters.
std::string CutLine(std::string_view line) {
  if (line.size() <= kMostQuoted) return std::string(line);
  size_t end = kMostQuoted;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  return std::string(line.substr(0, end)) + "...";
}

}  // namespace

// Where line `line` begins; npos where the text has fewer.
static size_t BeginOfLine(std::string_view text, uint32_t line) {
  size_t begin = 0;
  for (uint32_t at = 1; at < line; ++at) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) return begin;
    ++begin;
  }
  return begin;
}

std::string_view FindLine(std::string_view text, uint32_t line, uint64_t offset) {
  size_t begin = text.size() <= kMostCounted || offset == 0 ? BeginOfLine(text, line) : std::string_view::npos;
  if (begin == std::string_view::npos) {
    if (offset == 0 || offset >= text.size()) return {};
    const size_t before = text.rfind('\n', offset - 1);
    begin = before == std::string_view::npos ? 0 : before + 1;
  }
  std::string_view found = text.substr(begin, text.find('\n', begin) - begin);
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

std::string CitedLines::FindPath(const std::string& shown) const {
  if (shown.empty() || LeavesItsFolder(shown)) return "";
  std::string found;
  for (const std::string& path : paths_) {
    std::string here;
    if (path == shown || path.ends_with("/" + shown)) here = path;
    if (here.empty() || !IsRegularFile(here)) here = path + (path.ends_with('/') ? "" : "/") + shown;
    if (!IsRegularFile(here) || here == found) continue;
    if (!found.empty()) return "";  // two files go by this name
    found = std::move(here);
  }
  return found;
}

void CitedLines::Open(const std::string& shown) {
  shown_ = shown;
  unpacked_.clear();
  file_.reset();
  text_ = {};
  const std::string path = FindPath(shown);
  if (path.empty()) return;
  auto file = MappedFile::Open(path);
  if (!file || file->hole_bytes() > 0) return;
  file_ = std::move(*file);
  text_ = file_->bytes();
  if (const Compression kind = DetectCompression(text_); kind != Compression::none) {
    DecompressAll(text_, kind, kMostUnpacked, &unpacked_);
    text_ = unpacked_;
  }
}

std::string CitedLines::Read(const std::string& shown, uint32_t line, uint64_t offset) {
  if (line == 0) return "";
  if (shown != shown_) Open(shown);
  const std::string_view found = FindLine(text_, line, offset);
  if (found.size() > kMostLine || found.find('\0') != std::string_view::npos) return "";
  // Colours are for a terminal.
  return CutLine(HasTerminalCodes(found) ? DropTerminalCodes(found) : std::string(found));
}

}  // namespace tacet
