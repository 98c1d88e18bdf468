// SPDX-License-Identifier: Apache-2.0
#include "preflight/link_probe.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/text_scan.h"

namespace tacet {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One stream: writes until the time is up, then waits for the count.
Throughput Stream(const LinkTarget& target, int64_t for_ms) {
  auto socket = ConnectTo(target.address, target.port, 5000);
  if (!socket) return {socket.error().message};
  const int64_t deadline = MonotonicMs() + for_ms + 8000;
  const std::string block(size_t{256} << 10, 't');
  if (!SendAll(socket->fd(), "SINK\n", deadline)) return {"the connection was closed"};
  uint64_t sent = 0;
  for (const int64_t end = MonotonicMs() + for_ms; MonotonicMs() < end; sent += block.size())
    if (!SendAll(socket->fd(), block, deadline)) return {"sending stopped"};
  ::shutdown(socket->fd(), SHUT_WR);
  std::string count;
  char c = 0;
  while (count.size() < 24 && ReceiveAll(socket->fd(), &c, 1, deadline) && c != '\n') count += c;
  if (count != std::to_string(sent)) return {"not all bytes arrived"};
  return {"", static_cast<double>(sent)};
}

// Sends one chunk to the next while one of the neighbour before comes in.
bool ExchangeChunk(int next, int before, std::string_view out, std::vector<char>& in, int64_t deadline_ms) {
  size_t got = 0;
  while (!out.empty() || got < in.size()) {
    bool moved = false;
    if (!out.empty()) {
      const ssize_t n = ::send(next, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        out.remove_prefix(static_cast<size_t>(n));
        moved = true;
      } else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        return false;
      }
    }
    if (got < in.size()) {
      const ssize_t n = ::recv(before, in.data() + got, in.size() - got, MSG_DONTWAIT);
      if (n > 0) {
        got += static_cast<size_t>(n);
        moved = true;
      } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        return false;
      }
    }
    if (moved) continue;
    if (MonotonicMs() > deadline_ms) return false;
    pollfd two[2] = {{next, static_cast<short>(out.empty() ? 0 : POLLOUT), 0},
                     {before, static_cast<short>(got < in.size() ? POLLIN : 0), 0}};
    ::poll(two, 2, 100);
  }
  return true;
}

}  // namespace

RoundTrip MeasureRoundTrip(const LinkTarget& target, int count, int64_t connect_ms) {
  auto socket = ConnectTo(target.address, target.port, connect_ms);
  if (!socket) return {socket.error().message};
  const int64_t deadline = MonotonicMs() + connect_ms + 3000;
  if (!SendAll(socket->fd(), "ECHO\n", deadline)) return {"the connection was closed"};
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    char c = 'x';
    const auto start = Clock::now();
    if (!SendAll(socket->fd(), {&c, 1}, deadline) || !ReceiveAll(socket->fd(), &c, 1, deadline)) return {"no answer"};
    times.push_back(Since(start) * 1e6);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return {"", times[times.size() / 2]};
}

Throughput MeasureThroughput(const LinkTarget& target, int streams, int64_t for_ms) {
  std::vector<Throughput> parts(static_cast<size_t>(streams));
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (Throughput& part : parts) threads.emplace_back([&part, &target, for_ms] { part = Stream(target, for_ms); });
  for (std::thread& thread : threads) thread.join();
  const double seconds = Since(start);
  Throughput all;
  for (const Throughput& part : parts) {
    if (!part.error.empty()) all.error = part.error;
    all.bytes_per_s += part.bytes_per_s / seconds;
  }
  return all;
}

DatagramProbe ProbeDatagrams(const LinkTarget& target, int64_t mtu) {
  DatagramProbe probe;
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST;
  if (::getaddrinfo(target.address.c_str(), std::to_string(target.port).c_str(), &hints, &found) != 0) return probe;
  const Socket socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const bool six = found->ai_family == AF_INET6;
  const bool good = socket.open() && ::connect(socket.fd(), found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  if (!good) return probe;
  // Not to be taken apart on the way.
  const int dont = six ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;
  ::setsockopt(socket.fd(), six ? static_cast<int>(IPPROTO_IPV6) : static_cast<int>(IPPROTO_IP),
               six ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &dont, sizeof dont);
  const auto arrives = [&](size_t size) {
    std::string datagram(size, 'm');
    datagram.replace(0, 8, "tacetmtu");
    for (int attempt = 0; attempt < 3; ++attempt) {
      if (::send(socket.fd(), datagram.data(), datagram.size(), MSG_NOSIGNAL) < 0) continue;
      pollfd one{socket.fd(), POLLIN, 0};
      char answer[16] = "";
      if (::poll(&one, 1, 200) > 0 && ::recv(socket.fd(), answer, sizeof answer - 1, MSG_DONTWAIT) > 0 &&
          answer == std::to_string(size))
        return true;
    }
    return false;
  };
  const int64_t header = six ? 48 : 28;
  probe.small = arrives(64);
  probe.large =
      probe.small && mtu > header + 64 && arrives(static_cast<size_t>(std::min<int64_t>(mtu, 65535) - header));
  return probe;
}

RingRun RunRing(LinkServer& server, int64_t id, const LinkTarget& next, int hosts, int64_t bytes, int repeat) {
  RingRun run;
  const int64_t deadline = MonotonicMs() + 20'000;
  auto out = ConnectTo(next.address, next.port, 5000);
  if (!out || !SendAll(out->fd(), "RING " + std::to_string(id) + "\n", deadline)) {
    run.error = "no connection to the next host";
    return run;
  }
  const Socket in = server.TakeRing(id, deadline);
  if (!in.open()) {
    run.error = "no connection from the previous host";
    return run;
  }
  const size_t chunk = static_cast<size_t>(std::max<int64_t>(1, bytes / hosts));
  const std::string block(chunk, 'r');
  std::vector<char> received(chunk);
  for (int i = 0; i < repeat; ++i) {
    const auto start = Clock::now();
    for (int step = 0; step < 2 * (hosts - 1); ++step)
      if (!ExchangeChunk(out->fd(), in.fd(), block, received, deadline)) {
        run.error = "the exchange stopped";
        return run;
      }
    run.seconds.push_back(Since(start));
  }
  return run;
}

}  // namespace tacet
