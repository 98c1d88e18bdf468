// SPDX-License-Identifier: Apache-2.0
#include "preflight/message_channel.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace tacet {
namespace {

// True when the socket is ready before the deadline.
bool WaitFor(int fd, short events, int64_t deadline_ms) {
  for (;;) {
    const int64_t left = deadline_ms - MonotonicMs();
    if (left <= 0) return false;
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

void SetUp(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

std::string Numeric(const sockaddr_storage& address, socklen_t size) {
  char text[256] = "";
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) !=
      0)
    return "";
  constexpr std::string_view kMapped = "::ffff:";  // an IPv4 peer of an IPv6 socket
  return std::string_view(text).starts_with(kMapped) ? text + kMapped.size() : text;
}

// Connects to one address; errno tells why not.
int ConnectOnce(const addrinfo& target, int64_t deadline_ms) {
  const int fd = ::socket(target.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  SetUp(fd);
  int error = 0;
  if (::connect(fd, target.ai_addr, target.ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      error = ETIMEDOUT;
      if (WaitFor(fd, POLLOUT, deadline_ms)) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) return fd;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

int64_t MonotonicMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

int Socket::Release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void Socket::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<Socket> Listen(int first, int last, int* port) {
  std::string problem = "no port was given";
  for (int one = first; one <= last; ++one) {
    // IPv6 sockets take IPv4, too, where both are there.
    for (const int family : {AF_INET6, AF_INET}) {
      Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!socket.open()) continue;
      const int on = 1, off = 0;
      ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      sockaddr_storage address{};
      socklen_t size = 0;
      if (family == AF_INET6) {
        ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        auto& six = reinterpret_cast<sockaddr_in6&>(address);
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(static_cast<uint16_t>(one));
        size = sizeof six;
      } else {
        auto& four = reinterpret_cast<sockaddr_in&>(address);
        four.sin_family = AF_INET;
        four.sin_port = htons(static_cast<uint16_t>(one));
        size = sizeof four;
      }
      if (::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket.fd(), 512) != 0) {
        problem = std::strerror(errno);
        if (errno == EADDRINUSE) break;
        continue;
      }
      size = sizeof address;
      ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
      *port = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port);
      return socket;
    }
  }
  return Error{"port " + std::to_string(first) + " cannot be opened: " + problem, ""};
}

Result<Socket> ConnectTo(const std::string& host, int port, int64_t limit_ms) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return Error{"the name " + host + " does not resolve: " + ::gai_strerror(error), ""};
  const int64_t deadline = MonotonicMs() + limit_ms;
  int fd = -1, error = 0;
  for (const addrinfo* one = found; one != nullptr && fd < 0; one = one->ai_next) {
    fd = ConnectOnce(*one, deadline);
    if (fd < 0) error = errno;
  }
  ::freeaddrinfo(found);
  if (fd < 0) return Error{error == ETIMEDOUT ? "timed out" : std::strerror(error), ""};
  return Socket(fd);
}

std::string LocalAddress(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? Numeric(address, size) : "";
}

std::string PeerAddress(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? Numeric(address, size) : "";
}

bool SendAll(int fd, std::string_view bytes, int64_t deadline_ms) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || !WaitFor(fd, POLLOUT, deadline_ms)) return false;
  }
  return true;
}

bool ReceiveAll(int fd, char* bytes, size_t size, int64_t deadline_ms) {
  while (size > 0) {
    const ssize_t got = ::recv(fd, bytes, size, MSG_DONTWAIT);
    if (got > 0) {
      bytes += got;
      size -= static_cast<size_t>(got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || !WaitFor(fd, POLLIN, deadline_ms)) return false;
  }
  return true;
}

bool MessageChannel::Send(std::string_view json, int64_t deadline_ms) {
  return socket_.open() && SendAll(socket_.fd(), std::string(json) + "\n", deadline_ms);
}

std::optional<JsonValue> MessageChannel::Receive(int64_t deadline_ms) {
  while (socket_.open()) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      JsonValue value;
      bool cut = false;
      const bool good = ParseJson(std::string_view(buffer_).substr(0, end), &value, &cut) && !cut;
      buffer_.erase(0, end + 1);
      if (!good) break;
      return value;
    }
    char part[65536];
    const ssize_t got = ::recv(socket_.fd(), part, sizeof part, MSG_DONTWAIT);
    if (got > 0 && buffer_.size() + static_cast<size_t>(got) <= kLargest) {
      buffer_.append(part, static_cast<size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) break;  // gone, or too much
    if (!WaitFor(socket_.fd(), POLLIN, deadline_ms)) return std::nullopt;
  }
  socket_.Close();
  return std::nullopt;
}

}  // namespace tacet
