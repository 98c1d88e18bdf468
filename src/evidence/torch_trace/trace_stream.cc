// SPDX-License-Identifier: Apache-2.0
#include "trace_stream.h"

#include <algorithm>

#include "base/text_scan.h"
#include "json_span.h"

namespace tacet {
namespace {

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

size_t SkipSpaceAndCommas(std::string_view text, size_t at) {
  while (at < text.size() && (IsSpace(text[at]) || text[at] == ',')) ++at;
  return at;
}

// The next place that looks like the beginning of an event: a brace, blanks, "ph" or "name".
size_t NextEvent(std::string_view text, size_t at) {
  while ((at = text.find('{', at)) != std::string_view::npos) {
    const size_t key = SkipSpace(text, at + 1);
    if (text.substr(key, 4) == "\"ph\"" || text.substr(key, 6) == "\"name\"") return at;
    ++at;
  }
  return std::string_view::npos;
}

}  // namespace

// Behind an object or array, by the quick way where nothing speaks against it.
size_t TraceStream::SpanEnd(std::string_view text, size_t at) {
  // What follows the end is looked at as well.
  const std::string_view seen = text.substr(0, at + PieceLimit() + 64);
  const JsonSpan span = FindSpan(seen, at);
  looked_at_ += std::min(span.end, seen.size()) - at;
  if (!span.suspicious && span.end != std::string_view::npos) {
    const size_t next = SkipSpace(seen, span.end);
    if (next >= seen.size() || seen[next] == ',' || seen[next] == '}' || seen[next] == ']' || seen[next] == '{')
      return span.end;
  }
  if (!span.suspicious && span.end == std::string_view::npos) return std::string_view::npos;
  const size_t end = FindSpanTolerant(seen, at);
  looked_at_ += 4 * (std::min(end, seen.size()) - at);  // byte by byte: that much slower
  return end;
}

// Behind the value that begins at text[at]; std::string_view::npos when the text ends before it is sure where the value
// ends.
size_t TraceStream::ValueEnd(std::string_view text, size_t at, bool last) {
  if (at >= text.size()) return std::string_view::npos;
  if (text[at] == '{' || text[at] == '[') return SpanEnd(text, at);
  if (text[at] == '"') {
    const size_t end = FindStringEnd(text, at + 1);
    return end == text.size() && !last ? std::string_view::npos : end;
  }
  while (at < text.size() && text[at] != ',' && text[at] != '}' && text[at] != ']' && !IsSpace(text[at])) ++at;
  return at == text.size() && !last ? std::string_view::npos : at;
}

void TraceStream::Damage(size_t bytes) {
  not_understood_ += bytes;
  if (!in_damage_) ++damaged_places_;
  in_damage_ = true;
}

void TraceStream::Count(Reading reading, size_t bytes) {
  if (reading == Reading::not_understood) return Damage(bytes);
  in_damage_ = false;
  if (reading == Reading::understood) understood_ += bytes;
}

size_t TraceStream::GiveUp(std::string_view text, size_t at) {
  size_t next = state_ == State::events ? NextEvent(text, at + 1) : std::string_view::npos;
  if (next == std::string_view::npos) next = text.size();
  Damage(next - at);
  return next;
}

size_t TraceStream::TakeStart(std::string_view text, size_t at) {
  if (text.substr(at).starts_with("\xef\xbb\xbf")) return at + 3;
  if (text[at] == '{') {
    state_ = State::members;
  } else if (text[at] == '[') {
    state_ = State::events;
    bare_array_ = true;
  } else {
    Damage(1);
  }
  return at + 1;
}

size_t TraceStream::TakeMember(std::string_view text, size_t at, bool last) {
  if (text[at] == '}') {
    state_ = State::finished;
    return at + 1;
  }
  if (text[at] != '"') {
    Damage(1);
    return at + 1;
  }
  const size_t key_end = FindStringEnd(text, at + 1);
  if (key_end == std::string_view::npos) return at;
  const std::string_view key = text.substr(at + 1, key_end - at - 2);
  size_t value = SkipSpace(text, key_end);
  if (value >= text.size()) return at;
  if (text[value] != ':') {
    Damage(key_end - at);
    return key_end;
  }
  value = SkipSpace(text, value + 1);
  if (value >= text.size()) return at;
  if (text[value] == '[' && key == "traceEvents") {
    state_ = State::events;
    Count(Reading::understood, value + 1 - at);
    return value + 1;
  }
  const size_t end = ValueEnd(text, value, last);
  if (end == std::string_view::npos) return at;
  Count(sink_.OnMember(key, text.substr(value, end - value)), end - at);
  return std::max(end, at + 1);
}

size_t TraceStream::TakeEvent(std::string_view text, size_t at, bool) {
  if (text[at] == ']') {
    state_ = bare_array_ ? State::finished : State::members;
    return at + 1;
  }
  if (text[at] != '{') {
    size_t next = at + 1;
    while (next < text.size() && text[next] != '{' && text[next] != ']') ++next;
    Damage(next - at);
    return next;
  }
  const size_t end = SpanEnd(text, at);
  if (end == std::string_view::npos) return at;
  Count(sink_.OnEvent(text.substr(at, end - at)), end - at);
  return end;
}

size_t TraceStream::Consume(std::string_view text, bool last) {
  size_t at = 0;
  while (true) {
    at = SkipSpaceAndCommas(text, at);
    if (at >= text.size()) return text.size();
    size_t next = at;
    switch (state_) {
      case State::start: next = TakeStart(text, at); break;
      case State::members: next = TakeMember(text, at, last); break;
      case State::events: next = TakeEvent(text, at, last); break;
      case State::finished: Damage(text.size() - at); return text.size();
    }
    if (next == at) {
      if (text.size() - at <= PieceLimit()) return at;
      next = GiveUp(text, at);
    }
    at = next;
  }
}

void TraceStream::Feed(std::string_view chunk) {
  total_ += chunk.size();
  // The unfinished piece is completed with small bites of the chunk, so that the chunk itself is read in place.
  size_t bite = 4096;
  while (!tail_.empty() && !chunk.empty()) {
    const size_t before = tail_.size();
    const size_t take = std::min(bite, chunk.size());
    tail_.append(chunk.substr(0, take));
    const size_t used = Consume(tail_, false);
    if (used >= before) {
      chunk.remove_prefix(used - before);
      tail_.clear();
      break;
    }
    tail_.erase(0, used);
    chunk.remove_prefix(take);
    bite = std::min<size_t>(bite * 4, size_t{1} << 20);
  }
  if (chunk.empty()) return;
  tail_.assign(chunk.substr(Consume(chunk, false)));
}

void TraceStream::Finish() {
  const size_t used = tail_.empty() ? 0 : Consume(tail_, true);
  if (used < tail_.size()) Damage(tail_.size() - used);
  tail_.clear();
}

}  // namespace tacet
