// SPDX-License-Identifier: Apache-2.0
#include "launch/output_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

namespace tacet {
namespace {

constexpr size_t kLongestLine = 16 << 10;  // as container runtimes cut them

}  // namespace

std::string Rfc3339(int64_t wall_ns) {
  const std::time_t seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  std::tm broken{};
  ::gmtime_r(&seconds, &broken);
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &broken);
  std::snprintf(text + size, sizeof text - size, ".%09dZ", static_cast<int>(wall_ns % 1'000'000'000));
  return text;
}

int64_t ParseRfc3339(std::string_view text) {
  std::tm broken{};
  const std::string copy(text);
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &broken);
  if (rest == nullptr) return 0;
  int64_t wall_ns = static_cast<int64_t>(::timegm(&broken)) * 1'000'000'000;
  int64_t unit = 100'000'000;
  if (*rest == '.')
    for (++rest; *rest >= '0' && *rest <= '9' && unit > 0; ++rest, unit /= 10) wall_ns += (*rest - '0') * unit;
  return wall_ns;
}

OutputLog::OutputLog(std::string folder, Limits limits) : folder_(std::move(folder)), limits_(limits) {
  file_ = ::open((folder_ + "/output.log").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  failed_ = file_ < 0;
  writer_ = std::thread([this] { Work(); });
}

OutputLog::~OutputLog() { Finish(); }

void OutputLog::Add(OutputStream stream, std::string_view bytes, int64_t wall_ns) {
  const std::lock_guard lock(mutex_);
  if (queued_bytes_ + bytes.size() > limits_.queue_bytes) {
    dropped_ += bytes.size();
    return;
  }
  queued_bytes_ += bytes.size();
  queue_.push_back({stream, wall_ns, std::string(bytes)});
  wake_.notify_one();
}

void OutputLog::Finish() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    wake_.notify_one();
  }
  if (writer_.joinable()) writer_.join();
}

void OutputLog::Work() {
  std::vector<Piece> pieces;
  bool ending = false;
  while (!ending) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return ending_ || !queue_.empty(); });
      pieces.swap(queue_);
      ending = ending_;
    }
    uint64_t done = 0;
    for (const Piece& piece : pieces) {
      Write(piece);
      done += piece.bytes.size();
    }
    pieces.clear();
    Flush();
    const std::lock_guard lock(mutex_);
    queued_bytes_ -= done;
    ending = ending && queue_.empty();
  }
  for (const OutputStream stream : {OutputStream::out, OutputStream::error}) {
    std::string& rest = open_line_[static_cast<size_t>(stream)];
    if (!rest.empty()) WriteLine(stream, 'F', std::exchange(rest, ""));
  }
  Flush();
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void OutputLog::Write(const Piece& piece) {
  stamp_ = Rfc3339(piece.wall_ns);
  std::string& open = open_line_[static_cast<size_t>(piece.stream)];
  std::string_view rest = piece.bytes;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    open.append(part);
    while (open.size() > kLongestLine) {
      WriteLine(piece.stream, 'P', std::string_view(open).substr(0, kLongestLine));
      open.erase(0, kLongestLine);
    }
    if (end == std::string_view::npos) break;
    WriteLine(piece.stream, 'F', open);
    open.clear();
  }
}

void OutputLog::WriteLine(OutputStream stream, char tag, std::string_view line) {
  buffer_.append(stamp_).append(stream == OutputStream::out ? " stdout " : " stderr ").append(1, tag);
  buffer_.append(1, ' ').append(line).append(1, '\n');
  if (buffer_.size() > (1 << 18)) Flush();
}

void OutputLog::Flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && file_ >= 0) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failed_ = true;  // a full disk is no reason to disturb the job
      break;
    }
    rest.remove_prefix(static_cast<size_t>(written));
    in_file_ += static_cast<uint64_t>(written);
  }
  dropped_ += rest.size();
  buffer_.clear();
  if (in_file_ > limits_.file_bytes) TurnOver();
}

void OutputLog::TurnOver() {
  if (file_ >= 0) ::close(file_);
  const std::string late = folder_ + "/output.late.log";
  if (turns_++ > 0) std::rename(late.c_str(), (folder_ + "/output.before.log").c_str());
  file_ = ::open(late.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  failed_ = failed_ || file_ < 0;
  in_file_ = 0;
}

}  // namespace tacet
