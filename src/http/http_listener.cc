// SPDX-License-Identifier: Apache-2.0
#include "http/http_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tacet {
namespace {

constexpr int kBacklog = 4096;
// Small on purpose: the kernel keeps what a client does not read, and it counts as memory of the service. They hold for
// accepted connections as well.
constexpr int kSendBuffer = 64 << 10, kReceiveBuffer = 8 << 10;

int OpenAndListen(const addrinfo& at) {
  const int socket = ::socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at.ai_protocol);
  if (socket < 0) return -1;
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  if (::bind(socket, at.ai_addr, at.ai_addrlen) == 0 && ::listen(socket, kBacklog) == 0) return socket;
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

int PortOf(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

bool SomebodyListens(const sockaddr_un& at) {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool yes = ::connect(probe, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 || errno == EAGAIN;
  ::close(probe);
  return yes;
}

}  // namespace

HttpListener::HttpListener(HttpListener&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), port_(other.port_), path_(std::exchange(other.path_, "")) {}

HttpListener::~HttpListener() {
  if (socket_ >= 0) ::close(socket_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<HttpListener> HttpListener::OnAddress(const HttpAddress& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const int unknown = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (unknown != 0)
    return Error{"cannot listen on " + Show(address) + ": " + ::gai_strerror(unknown),
                 "choose another with --listen HOST:PORT"};
  HttpListener listener;
  int error = 0;
  for (const addrinfo* one = found; one != nullptr && listener.socket_ < 0; one = one->ai_next) {
    listener.socket_ = OpenAndListen(*one);
    if (listener.socket_ < 0) error = errno;
  }
  ::freeaddrinfo(found);
  if (listener.socket_ < 0) {
    const bool usual = error == EADDRINUSE || error == EADDRNOTAVAIL;
    return Error{"cannot listen on " + Show(address) + ": " +
                     (usual ? "the port is in use, or the address does not belong to this host" : std::strerror(error)),
                 "choose another with --listen HOST:PORT"};
  }
  listener.port_ = PortOf(listener.socket_);
  return listener;
}

Result<HttpListener> HttpListener::OnUnixSocket(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (path.size() >= sizeof at.sun_path) return Error{"the path of the socket '" + path + "' is too long", ""};
  std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
  struct stat seen {};
  if (::lstat(path.c_str(), &seen) == 0) {
    if (!S_ISSOCK(seen.st_mode)) return Error{"'" + path + "' exists and is not a socket", "choose another path"};
    if (SomebodyListens(at))
      return Error{"another process listens on '" + path + "'", "end it, or choose another path"};
    ::unlink(path.c_str());
  }
  HttpListener listener;
  listener.socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ::setsockopt(listener.socket_, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  if (listener.socket_ < 0 || ::bind(listener.socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0)
    return Error{"cannot listen on '" + path + "': " + std::strerror(errno),
                 "choose a folder that this user may write to"};
  listener.path_ = path;
  // Who connects is told by the kernel, so everybody may.
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(listener.socket_, kBacklog) != 0)
    return Error{"cannot listen on '" + path + "': " + std::strerror(errno), ""};
  return listener;
}

}  // namespace tacet
