// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

enum class Reading : uint8_t { understood, ignored, not_understood };

// Takes the pieces of a Chrome trace as they are found. Views are valid during the call only.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // A member of the outer object, traceEvents left out; the value is as written, strings with their quotes.
  virtual Reading OnMember(std::string_view key, std::string_view value) = 0;
  // One element of traceEvents with its braces.
  virtual Reading OnEvent(std::string_view event) = 0;
};

// Cuts the text of a Chrome trace into members and events while it arrives in chunks of any size. Keeps no more than
// one unfinished piece. Survives what real writers produce: a cut file, trailing and missing commas, quotes that were
// not escaped, NaN, members behind the events, and the bare array form.
//   {"schemaVersion": 1, "deviceProperties": [...], "baseTimeNanoseconds": 1790857026000000000,
//    "traceEvents": [ {"ph": "X", ...}, {"ph": "i", ...} ], "traceName": "x.json"}
class TraceStream {
 public:
  explicit TraceStream(TraceSink& sink) : sink_(sink) {}

  void Feed(std::string_view chunk);
  void Finish();

  bool complete() const { return state_ == State::finished; }  // the closing bracket was seen
  uint64_t total_bytes() const { return total_; }
  uint64_t understood_bytes() const { return understood_; }
  uint64_t not_understood_bytes() const { return not_understood_; }
  uint64_t damaged_places() const { return damaged_places_; }

 private:
  enum class State { start, members, events, finished };

  // A piece that grows beyond this is given up: the text is damaged, or it is no trace.
  static constexpr size_t kMaxPiece = size_t{16} << 20;
  // Looking for the end of a piece that has none costs time, and made-up text may have millions of those. Text that was
  // looked at this many times over is only searched for short events from then on.
  static constexpr uint64_t kMaxLooks = 16, kFreeLooks = uint64_t{1} << 26;
  static constexpr size_t kShortPiece = 1024;

  size_t Consume(std::string_view text, bool last);
  size_t PieceLimit() const { return looked_at_ > kMaxLooks * total_ + kFreeLooks ? kShortPiece : kMaxPiece; }
  size_t SpanEnd(std::string_view text, size_t at);
  size_t ValueEnd(std::string_view text, size_t at, bool last);
  // Each looks at the piece that begins at text[at] and returns where the next one begins, or `at` when it needs more
  // text.
  size_t TakeStart(std::string_view text, size_t at);
  size_t TakeMember(std::string_view text, size_t at, bool last);
  size_t TakeEvent(std::string_view text, size_t at, bool last);
  size_t GiveUp(std::string_view text, size_t at);
  void Damage(size_t bytes);
  void Count(Reading reading, size_t bytes);

  TraceSink& sink_;
  State state_ = State::start;
  bool bare_array_ = false;
  std::string tail_;  // the unfinished piece of the last chunk
  uint64_t total_ = 0, understood_ = 0, not_understood_ = 0, damaged_places_ = 0;
  uint64_t looked_at_ = 0;
  bool in_damage_ = false;
};

}  // namespace tacet
