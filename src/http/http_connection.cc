// SPDX-License-Identifier: Apache-2.0
#include "http/http_connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tacet {
namespace {

constexpr int kMostRequests = 1000;   // of one connection
constexpr int64_t kLeavingMs = 1000;  // for a client to notice that it was answered
constexpr size_t kSmallAnswer = 16384;

}  // namespace

int64_t HttpClockMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

HttpConnection::HttpConnection(uint64_t id, std::unique_ptr<ByteStream> stream, HttpPeer peer,
                               const HttpServerLimits& limits)
    : id_(id),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      limits_(limits),
      state_(stream_->is_tls() ? State::handshaking : State::reading),
      since_ms_(HttpClockMs()),
      progress_ms_(since_ms_) {}

void HttpConnection::EndHandshake(StreamStep step) {
  handshake_wants_write_ = step == StreamStep::want_write;
  state_ = step == StreamStep::done ? State::reading : step == StreamStep::closed ? State::closed : State::handshaking;
}

bool HttpConnection::TakeRequest(HttpRequest* request) {
  if (state_ == State::leaving) return ReadAway(), false;
  if (state_ != State::reading) return false;
  for (;;) {
    const HttpHead head = ParseHttpHead(in_);
    if (head.state == HttpHead::State::whole) {
      in_.erase(0, head.bytes);
      if (in_.size() > kMostHeadBytes) in_.resize(kMostHeadBytes);
      *request = head.request;
      request->peer = peer_;
      request->over_tls = stream_->is_tls();
      request->has_client_certificate = stream_->has_peer_certificate();
      keep_alive_ = head.request.keep_alive && ++requests_ < kMostRequests;
      state_ = State::working;
      return true;
    }
    if (head.state == HttpHead::State::bad) {
      keep_alive_ = false;
      Answer(ErrorReply(head.status, head.why), false);
      return false;
    }
    char piece[4096];
    size_t got = 0;
    const size_t room = std::min(sizeof piece, kMostHeadBytes + 4 - std::min(in_.size(), kMostHeadBytes));
    const StreamStep step = stream_->Read(piece, room, &got);
    if (step == StreamStep::closed) state_ = State::closed;
    if (step != StreamStep::done) return false;
    progress_ms_ = HttpClockMs();
    if (in_.empty() && requests_ > 0) since_ms_ = progress_ms_;  // the next request begins
    in_.append(piece, got);
  }
}

void HttpConnection::Answer(HttpReply reply, bool head_only) {
  head_ = WriteReplyHead(reply, keep_alive_);
  body_ = head_only ? std::string() : std::move(reply.body);
  sent_ = 0;
  state_ = State::writing;
  since_ms_ = progress_ms_ = HttpClockMs();
  Send();
}

void HttpConnection::Send() {
  while (state_ == State::writing && unsent_bytes() > 0) {
    // Head and body as one where they are small: a client that reads once gets all.
    if (sent_ == 0 && !body_.empty() && head_.size() + body_.size() <= kSmallAnswer)
      head_ += std::exchange(body_, std::string());
    const bool in_head = sent_ < head_.size();
    const std::string& from = in_head ? head_ : body_;
    const size_t at = in_head ? sent_ : sent_ - head_.size();
    size_t put = 0;
    const StreamStep step = stream_->Write(from.data() + at, from.size() - at, &put);
    if (step == StreamStep::closed) state_ = State::closed;
    if (step != StreamStep::done) return;
    sent_ += put;
    progress_ms_ = HttpClockMs();
  }
  if (state_ == State::writing) FinishAnswer();
}

void HttpConnection::FinishAnswer() {
  head_ = std::string();
  body_ = std::string();
  sent_ = 0;
  since_ms_ = progress_ms_ = HttpClockMs();
  if (keep_alive_) {
    state_ = State::reading;
    return;
  }
  stream_->SayGoodbye();
  state_ = State::leaving;
}

void HttpConnection::ReadAway() {
  char piece[4096];
  size_t got = 0;
  for (int i = 0; i < 4; ++i) {  // no more at a time: it may send for ever
    const StreamStep step = stream_->Read(piece, sizeof piece, &got);
    if (step == StreamStep::closed) state_ = State::closed;
    if (step != StreamStep::done) return;
  }
}

bool HttpConnection::IsOver(int64_t now_ms) const {
  switch (state_) {
    case State::working: return false;
    case State::leaving: return now_ms - since_ms_ > kLeavingMs;
    case State::writing: return now_ms - progress_ms_ > limits_.stalled_ms || now_ms - since_ms_ > limits_.answer_ms;
    case State::reading: return now_ms - since_ms_ > (requests_ > 0 && in_.empty() ? limits_.idle_ms : limits_.head_ms);
    default: return now_ms - since_ms_ > limits_.head_ms;
  }
}

bool HttpConnection::MayBeEvicted(int64_t now_ms) const {
  constexpr int64_t kSlowMs = 500;
  if (state_ == State::working || state_ == State::closed) return false;
  return state_ != State::writing || now_ms - progress_ms_ > kSlowMs;
}

}  // namespace tacet
