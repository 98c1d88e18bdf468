// SPDX-License-Identifier: Apache-2.0
#include "live/agent/ras_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace tacet {
namespace {

constexpr size_t kMostBytes = 16 << 20;

class Deadline {
 public:
  explicit Deadline(int64_t ms) : end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(ms)) {}
  int left_ms() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    return left.count() > 0 ? static_cast<int>(left.count()) : 0;
  }

 private:
  std::chrono::steady_clock::time_point end_;
};

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }
  bool WaitFor(short events, const Deadline& deadline) const {
    pollfd entry{fd_, events, 0};
    return ::poll(&entry, 1, deadline.left_ms()) > 0;
  }

 private:
  int fd_;
};

bool Connect(const Socket& socket, const addrinfo& to, const Deadline& deadline) {
  ::fcntl(socket.fd(), F_SETFL, O_NONBLOCK);
  if (::connect(socket.fd(), to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS || !socket.WaitFor(POLLOUT, deadline)) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

Result<std::string> Converse(const Socket& socket, const Deadline& deadline) {
  static constexpr std::string_view kQuestion = "TIMEOUT 5\nVERBOSE STATUS\n";
  if (::send(socket.fd(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(kQuestion.size()))
    return Error{"RAS accepted no request", ""};
  std::string answer;
  char piece[16384];
  while (socket.WaitFor(POLLIN, deadline) && answer.size() < kMostBytes) {
    const ssize_t got = ::recv(socket.fd(), piece, sizeof piece, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return Error{std::string("RAS closed the connection: ") + std::strerror(errno), ""};
    if (got == 0) return answer;
    answer.append(piece, static_cast<size_t>(got));
  }
  return Error{"RAS did not answer in time", ""};
}

}  // namespace

HttpAddress RasAddress() {
  const HttpAddress usual{"localhost", 28028};
  const char* told = std::getenv("NCCL_RAS_ADDR");
  if (told == nullptr || *told == 0) return usual;
  auto address = ParseHttpAddress(told, usual);
  return address ? *address : usual;
}

Result<std::string> AskRas(const HttpAddress& address, int64_t limit_ms) {
  const Deadline deadline(limit_ms);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0)
    return Error{"cannot resolve '" + address.host + "'", ""};
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const Socket socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (socket.fd() < 0 || !Connect(socket, *one, deadline)) continue;
    ::freeaddrinfo(found);
    return Converse(socket, deadline);
  }
  ::freeaddrinfo(found);
  return Error{"nothing listens at " + Show(address), ""};
}

}  // namespace tacet
