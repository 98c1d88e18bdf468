// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "base/result.h"

namespace tacet {

int64_t MonotonicMs();

// A socket that closes itself.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.Release()) {}
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { Close(); }
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  int Release();
  void Close();

 private:
  int fd_ = -1;
};

// Listens on all addresses. Port 0 takes any, `first`..`last` the first one that is free.
Result<Socket> Listen(int first, int last, int* port);
// Connects within the time; the error is the system's word ("Connection refused", "timed out").
Result<Socket> ConnectTo(const std::string& host, int port, int64_t limit_ms);
std::string LocalAddress(int fd);
std::string PeerAddress(int fd);

bool SendAll(int fd, std::string_view bytes, int64_t deadline_ms);
// False at the end, at an error and after the deadline.
bool ReceiveAll(int fd, char* bytes, size_t size, int64_t deadline_ms);

// JSON messages, one per line. The other side may be anybody: a message has a largest size.
class MessageChannel {
 public:
  static constexpr size_t kLargest = size_t{4} << 20;

  explicit MessageChannel(Socket socket) : socket_(std::move(socket)) {}
  bool Send(std::string_view json, int64_t deadline_ms);
  std::optional<JsonValue> Receive(int64_t deadline_ms);
  int fd() const { return socket_.fd(); }
  bool open() const { return socket_.open(); }
  void Close() { socket_.Close(); }

 private:
  Socket socket_;
  std::string buffer_;
};

}  // namespace tacet
