// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/utf8.h"
#include "render/text_layout.h"

namespace tacet {

int Complain(const Error& error) {
  // A message stays in one line, for whoever searches a log for it; a hint may be a long list.
  std::fprintf(stderr, "tacet: %s\n", EscapeForTerminal(error.message).c_str());
  if (error.hint.empty()) return kUsage;
  constexpr size_t kIndent = 7;
  const size_t width = std::max(static_cast<size_t>(TerminalWidth()), kIndent + 33) - kIndent;
  for (const std::string& line : Wrap(EscapeForTerminal(error.hint), width))
    std::fprintf(stderr, "       %s\n", line.c_str());
  return kUsage;
}

std::string InPaths(const std::vector<std::string>& paths) {
  return paths.size() == 1 ? "in " + paths.front() : "in these paths";
}

bool StandardOutputTakesColour() {
  // no-color.org: set and not empty. A dumb terminal shows escapes as they are.
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if ((refused && *refused) || (terminal && std::string_view(terminal) == "dumb")) return false;
  return ::isatty(STDOUT_FILENO) != 0;
}

int TerminalWidth() {
  // COLUMNS first, as ls has it: it also sets the width of what goes into a file or a pager.
  if (const char* wish = std::getenv("COLUMNS")) {
    const long columns = std::strtol(wish, nullptr, 10);
    if (columns >= 40) return static_cast<int>(std::min(columns, 1000L));
  }
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col < 120 ? size.ws_col : 120;
  return 100;
}

size_t HelpWidth() {
  const bool asked = std::getenv("COLUMNS") != nullptr || ::isatty(STDOUT_FILENO) != 0;
  constexpr size_t kAsWritten = 120;
  return asked ? static_cast<size_t>(TerminalWidth()) : kAsWritten;
}

size_t ListWidth() { return ::isatty(STDOUT_FILENO) != 0 ? static_cast<size_t>(TerminalWidth()) : 1000; }

bool WriteOutput(const std::string& path, std::string_view bytes, std::string_view option) {
  if (path.empty()) {
    const bool ok = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0;
    // A reader that has seen enough (head, a pager that was left) is no reason for a message.
    if (!ok && errno != EPIPE) Complain({std::string("cannot write to standard output: ") + std::strerror(errno), ""});
    return ok;
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool ok = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = file && std::fclose(file) == 0;
  if (!ok || !closed)
    Complain(
        {"cannot write '" + path + "': " + std::strerror(errno), "choose another file with " + std::string(option)});
  return ok && closed;
}

namespace {
std::mutex progress_mutex;
std::chrono::steady_clock::time_point progress_next;
}  // namespace

ProgressLine::ProgressLine(std::string_view what) : what_(what), active_(::isatty(STDERR_FILENO) != 0) {
  // Short work prints nothing at all.
  progress_next = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::Update(size_t done, size_t total) {
  if (!active_) return;
  const std::lock_guard lock(progress_mutex);
  const auto now = std::chrono::steady_clock::now();
  if (now < progress_next) return;
  progress_next = now + std::chrono::milliseconds(100);
  shown_ = true;
  std::fprintf(stderr, "\r%s %zu of %zu files\033[K", what_.c_str(), done, total);
}

}  // namespace tacet
