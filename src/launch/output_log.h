// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tacet {

enum class OutputStream : uint8_t { out, error };

// Keeps a job's output with times, in the form in which container runtimes keep it, so that every reader of such logs
// reads it: "2026-11-15T00:20:00.123456789Z stdout F text". A thread of its own writes; whoever hands output in never
// waits for a disk. What does not fit into the queue is dropped and counted.
class OutputLog {
 public:
  struct Limits {
    uint64_t queue_bytes = uint64_t{64} << 20;
    // The beginning is kept, and the end: output.log, then output.late.log and the piece before it.
    uint64_t file_bytes = uint64_t{256} << 20;
  };

  OutputLog(std::string folder, Limits limits);
  explicit OutputLog(std::string folder) : OutputLog(std::move(folder), Limits()) {}
  ~OutputLog();

  void Add(OutputStream stream, std::string_view bytes, int64_t wall_ns);
  // Writes what is left, the unfinished lines too. Nothing may be added afterwards.
  void Finish();
  uint64_t dropped_bytes() const { return dropped_; }
  bool failed() const { return failed_; }  // the file could not be written to the end

 private:
  struct Piece {
    OutputStream stream;
    int64_t wall_ns;
    std::string bytes;
  };
  void Work();
  void Write(const Piece& piece);
  void WriteLine(OutputStream stream, char tag, std::string_view line);
  void Flush();
  void TurnOver();

  const std::string folder_;
  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Piece> queue_;
  uint64_t queued_bytes_ = 0;
  bool ending_ = false;
  std::atomic<uint64_t> dropped_{0};
  std::atomic<bool> failed_{false};

  // The writer's own.
  int file_ = -1;
  uint64_t in_file_ = 0;
  int turns_ = 0;
  std::string stamp_, buffer_;
  std::array<std::string, 2> open_line_;
  std::thread writer_;
};

// "2026-11-15T00:20:00.123456789Z"
std::string Rfc3339(int64_t wall_ns);
int64_t ParseRfc3339(std::string_view text);  // as written by Rfc3339; 0 where it is none

}  // namespace tacet
