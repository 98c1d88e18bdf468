// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/text_scan.h"
#include "http/http_client.h"

namespace tacet {
namespace {

constexpr size_t kMostAnswerHead = 32768;

bool ReadNumber(std::string_view text, int base, uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return error == std::errc() && end != text.data();
}

}  // namespace

HttpAnswerReader::State HttpAnswerReader::Take(std::string_view bytes) {
  in_.append(bytes);
  if (!has_head_)
    if (const State state = ReadHead(); state != State::more || !has_head_) return state;
  return chunked_ ? ReadChunks() : ReadPlain();
}

HttpAnswerReader::State HttpAnswerReader::End() {
  return has_head_ && !chunked_ && !has_length_ ? State::whole : State::bad;
}

HttpAnswerReader::State HttpAnswerReader::ReadHead() {
  const size_t end = in_.find("\r\n\r\n");
  if (end == std::string::npos) return in_.size() > kMostAnswerHead ? State::bad : State::more;
  std::string_view text = std::string_view(in_).substr(0, end);
  uint64_t status = 0;
  if (!text.starts_with("HTTP/1.") || text.size() < 12 || !ReadNumber(text.substr(9, 3), 10, &status))
    return State::bad;
  reply.status = static_cast<int>(status);
  reply.type.clear();
  for (size_t at = text.find("\r\n"); at != std::string_view::npos; at = text.find("\r\n", at + 2)) {
    const std::string_view line = text.substr(at + 2, text.find("\r\n", at + 2) - at - 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string name = LowerCase(line.substr(0, colon));
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.size(), value.find_first_not_of(" \t")));
    if (name == "content-type") reply.type = value;
    if (name == "transfer-encoding") chunked_ = LowerCase(value).find("chunked") != std::string::npos;
    if (name == "content-length" && !(has_length_ = ReadNumber(value, 10, &length_))) return State::bad;
  }
  in_.erase(0, end + 4);
  has_head_ = true;
  if (status == 204 || status == 304) has_length_ = true, chunked_ = false, length_ = 0;
  if (has_length_ && !chunked_ && length_ > most_bytes_) return State::too_large;
  return State::more;
}

HttpAnswerReader::State HttpAnswerReader::ReadPlain() {
  if (reply.body.size() + in_.size() > (has_length_ ? length_ : most_bytes_)) {
    if (!has_length_) return State::too_large;
    in_.resize(length_ - reply.body.size());  // what comes behind is not ours
  }
  reply.body += in_;
  in_.clear();
  return has_length_ && reply.body.size() == length_ ? State::whole : State::more;
}

// "1f4\r\n<500 bytes>\r\n...0\r\n\r\n"
HttpAnswerReader::State HttpAnswerReader::ReadChunks() {
  size_t at = 0;
  State state = State::more;
  while (state == State::more) {
    if (chunk_left_ > 0) {  // with the line end behind it
      const uint64_t piece = std::min<uint64_t>(chunk_left_, in_.size() - at);
      const uint64_t text = chunk_left_ > 2 ? std::min<uint64_t>(piece, chunk_left_ - 2) : 0;
      if (reply.body.size() + text > most_bytes_) return State::too_large;
      reply.body.append(in_, at, text);
      at += piece;
      chunk_left_ -= piece;
      if (chunk_left_ > 0) break;
    }
    const size_t end = in_.find("\r\n", at);
    if (end == std::string::npos) {
      if (in_.size() - at > 256) return State::bad;
      break;
    }
    uint64_t size = 0;
    if (!ReadNumber(std::string_view(in_).substr(at, end - at), 16, &size)) return State::bad;
    if (size > most_bytes_) return State::too_large;
    at = end + 2;
    if (size == 0) state = State::whole;
    chunk_left_ = size + 2;
  }
  in_.erase(0, at);
  return state;
}

}  // namespace tacet
