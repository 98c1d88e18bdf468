// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "http/http_message.h"
#include "http/http_server.h"
#include "http/tls.h"

namespace tacet {

int64_t HttpClockMs();  // monotonic

// One client of the server, from its first byte to its last. The serving thread alone uses it; while `state` is
// `working` a worker has its stream or its request, and it is left alone.
class HttpConnection {
 public:
  enum class State { handshaking, reading, working, writing, leaving, closed };

  HttpConnection(uint64_t id, std::unique_ptr<ByteStream> stream, HttpPeer peer, const HttpServerLimits& limits);

  // Takes what has arrived; a whole request makes it `working` and is handed out. A bad one is answered and closed.
  bool TakeRequest(HttpRequest* request);
  void BeginHandshake() { state_ = State::working; }
  void EndHandshake(StreamStep step);  // of what a worker did
  // Starts to send; `head_only` for HEAD.
  void Answer(HttpReply reply, bool head_only);
  void Send();

  bool IsOver(int64_t now_ms) const;  // its time is up
  // May give way to a newcomer: it waits for its client, not its client for it.
  bool MayBeEvicted(int64_t now_ms) const;
  bool WantsWrite() const { return state_ == State::writing || handshake_wants_write_; }

  uint64_t id() const { return id_; }
  State state() const { return state_; }
  void Close() { state_ = State::closed; }
  const HttpPeer& peer() const { return peer_; }
  ByteStream& stream() { return *stream_; }
  int64_t since_ms() const { return since_ms_; }
  uint64_t unsent_bytes() const { return head_.size() + body_.size() - sent_; }
  bool saw_request() const { return requests_ > 0; }
  bool may_have_next() const { return state_ == State::reading && !in_.empty(); }

 private:
  void FinishAnswer();
  void ReadAway();  // after the last answer, until the client closes: else the answer may be lost

  uint64_t id_;
  std::unique_ptr<ByteStream> stream_;
  HttpPeer peer_;
  const HttpServerLimits& limits_;
  State state_;
  std::string in_, head_, body_;
  size_t sent_ = 0;
  bool keep_alive_ = false, handshake_wants_write_ = false;
  int requests_ = 0;
  int64_t since_ms_;     // began to wait for the client: for a request, or for reading the answer
  int64_t progress_ms_;  // when the client last took or gave a byte
};

}  // namespace tacet
