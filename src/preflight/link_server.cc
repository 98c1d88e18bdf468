// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/text_scan.h"
#include "preflight/link_probe.h"

namespace tacet {
namespace {

constexpr int64_t kIdleMs = 10'000;  // nobody measures for longer without a byte
constexpr int kTickMs = 100;

// A UDP socket on the port that TCP has; without it the size of datagrams is not tried.
Socket OpenDatagrams(int port) {
  Socket socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<uint16_t>(port));
  const int off = 0;
  if (socket.open()) ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (socket.open() && ::bind(socket.fd(), reinterpret_cast<sockaddr*>(&six), sizeof six) == 0) return socket;
  Socket old(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<uint16_t>(port));
  if (!old.open() || ::bind(old.fd(), reinterpret_cast<sockaddr*>(&four), sizeof four) != 0) old.Close();
  return old;
}

// "ECHO\n", "SINK\n" or "RING 7\n".
std::string ReadHeader(int fd) {
  std::string header;
  char c = 0;
  const int64_t deadline = MonotonicMs() + kIdleMs;
  while (header.size() < 40 && ReceiveAll(fd, &c, 1, deadline) && c != '\n') header += c;
  return c == '\n' ? header : "";
}

void Echo(int fd) {
  char c = 0;
  while (ReceiveAll(fd, &c, 1, MonotonicMs() + kIdleMs) && SendAll(fd, {&c, 1}, MonotonicMs() + kIdleMs)) {
  }
}

// Reads to the end, then says how much there was.
void Sink(int fd) {
  std::vector<char> buffer(size_t{256} << 10);
  uint64_t total = 0;
  for (;;) {
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      total += static_cast<uint64_t>(got);
    } else if (got == 0) {
      break;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd one{fd, POLLIN, 0};
      if (::poll(&one, 1, kIdleMs) <= 0) return;
    } else if (errno != EINTR) {
      return;
    }
  }
  SendAll(fd, std::to_string(total) + "\n", MonotonicMs() + kIdleMs);
}

}  // namespace

LinkServer::LinkServer(Socket tcp, Socket udp, int port) : tcp_(std::move(tcp)), udp_(std::move(udp)), port_(port) {
  acceptor_ = std::thread([this] { Accept(); });
  if (udp_.open()) answerer_ = std::thread([this] { AnswerDatagrams(); });
}

Result<std::unique_ptr<LinkServer>> LinkServer::Start(int first_port, int last_port) {
  int port = 0;
  auto socket = Listen(first_port, last_port, &port);
  if (!socket) return socket.error();
  Socket udp = OpenDatagrams(port);
  return std::unique_ptr<LinkServer>(new LinkServer(std::move(*socket), std::move(udp), port));
}

LinkServer::~LinkServer() {
  stopping_ = true;
  acceptor_.join();
  if (answerer_.joinable()) answerer_.join();
  while (serving_ > 0) ::poll(nullptr, 0, 5);  // each ends with its connection or after kIdleMs
}

void LinkServer::Accept() {
  while (!stopping_) {
    pollfd one{tcp_.fd(), POLLIN, 0};
    if (::poll(&one, 1, kTickMs) <= 0) continue;
    Socket socket(::accept4(tcp_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open() || serving_ >= kMostConnections) continue;
    ++serving_;
    std::thread([this, fd = socket.Release()] {
      Serve(Socket(fd));
      --serving_;
    }).detach();
  }
}

void LinkServer::Serve(Socket socket) {
  const std::string header = ReadHeader(socket.fd());
  if (header == "ECHO") return Echo(socket.fd());
  if (header == "SINK") return Sink(socket.fd());
  std::string_view rest = header;
  int64_t id = 0;
  if (!TakeLiteral(rest, "RING ") || !TakeNumber(rest, &id)) return;
  const std::lock_guard lock(mutex_);
  rings_[id] = std::move(socket);
  ring_came_.notify_all();
}

Socket LinkServer::TakeRing(int64_t id, int64_t deadline_ms) {
  std::unique_lock lock(mutex_);
  while (!rings_.contains(id)) {
    const int64_t left = deadline_ms - MonotonicMs();
    if (left <= 0) return Socket();
    ring_came_.wait_for(lock, std::chrono::milliseconds(left));
  }
  Socket socket = std::move(rings_[id]);
  rings_.erase(id);
  return socket;
}

// Answers with the length of what came, so that a datagram cut on its way would show.
void LinkServer::AnswerDatagrams() {
  std::vector<char> buffer(65536);
  while (!stopping_) {
    pollfd one{udp_.fd(), POLLIN, 0};
    if (::poll(&one, 1, kTickMs) <= 0) continue;
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        ::recvfrom(udp_.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 8 || std::memcmp(buffer.data(), "tacetmtu", 8) != 0) continue;
    const std::string answer = std::to_string(got);
    ::sendto(udp_.fd(), answer.data(), answer.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), size);
  }
}

}  // namespace tacet
