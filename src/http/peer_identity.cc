// SPDX-License-Identifier: Apache-2.0
#include "http/peer_identity.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace tacet {
namespace {

constexpr int kListening = 10;

struct Ends {
  sockaddr_storage here{}, there{};
};

bool IsV4Mapped(const sockaddr_storage& end) {
  return end.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&reinterpret_cast<const sockaddr_in6&>(end).sin6_addr);
}

// ::ffff:127.0.0.1 is 127.0.0.1 to whom it concerns.
sockaddr_storage Unmapped(const sockaddr_storage& end) {
  if (!IsV4Mapped(end)) return end;
  const auto& six = reinterpret_cast<const sockaddr_in6&>(end);
  sockaddr_storage out{};
  auto& four = reinterpret_cast<sockaddr_in&>(out);
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  std::memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, 4);
  return out;
}

bool IsLoopback(const sockaddr_storage& end) {
  if (end.ss_family == AF_INET) return (ntohl(reinterpret_cast<const sockaddr_in&>(end).sin_addr.s_addr) >> 24) == 127;
  return end.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(end).sin6_addr);
}

// Neighbours in one /64 are one customer.
std::string KeyOf(const sockaddr_storage& end) {
  char text[INET6_ADDRSTRLEN] = "unknown";
  if (end.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(end).sin_addr, text, sizeof text);
  } else if (end.ss_family == AF_INET6) {
    in6_addr network = reinterpret_cast<const sockaddr_in6&>(end).sin6_addr;
    std::memset(network.s6_addr + 8, 0, 8);
    ::inet_ntop(AF_INET6, &network, text, sizeof text);
  }
  return text;
}

void Put(const sockaddr_storage& end, __be32* address, __be16* port) {
  if (end.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(end);
    std::memcpy(address, &four.sin_addr, 4);
    *port = four.sin_port;
  } else {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(end);
    std::memcpy(address, &six.sin6_addr, 16);
    *port = six.sin6_port;
  }
}

enum class Found { user, nobody, unavailable };

// Asks for the one socket whose ends are the other way round. An orphan has no inode, and its user reads as 0.
Found AskSockDiag(const Ends& ends, int64_t* uid) {
  const int netlink = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) return Found::unavailable;
  const timeval patience{1, 0};
  ::setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  struct {
    nlmsghdr head;
    inet_diag_req_v2 body;
  } question{};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = static_cast<uint8_t>(ends.there.ss_family);
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = ~0u;
  Put(ends.there, question.body.id.idiag_src, &question.body.id.idiag_sport);
  Put(ends.here, question.body.id.idiag_dst, &question.body.id.idiag_dport);
  question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  Found found = Found::unavailable;
  alignas(nlmsghdr) char answer[4096];
  if (::send(netlink, &question, sizeof question, 0) == static_cast<ssize_t>(sizeof question)) {
    const ssize_t got = ::recv(netlink, answer, sizeof answer, 0);
    const auto* head = reinterpret_cast<const nlmsghdr*>(answer);
    if (got >= static_cast<ssize_t>(sizeof *head) && head->nlmsg_type == NLMSG_ERROR) {
      const auto* error = reinterpret_cast<const nlmsgerr*>(answer + NLMSG_HDRLEN);
      found = got >= static_cast<ssize_t>(NLMSG_HDRLEN + sizeof *error) && error->error == -ENOENT ? Found::nobody
                                                                                                   : Found::unavailable;
    } else if (got >= static_cast<ssize_t>(NLMSG_HDRLEN + sizeof(inet_diag_msg))) {
      const auto* told = reinterpret_cast<const inet_diag_msg*>(answer + NLMSG_HDRLEN);
      found = told->idiag_inode != 0 ? Found::user : Found::nobody;
      if (found == Found::user) *uid = told->idiag_uid;
    }
  }
  ::close(netlink);
  return found;
}

// As the table writes an end: the address as 32-bit words of this machine, in hex.
std::string TableText(const sockaddr_storage& end) {
  __be32 words[4] = {};
  __be16 port = 0;
  Put(end, words, &port);
  std::string out;
  char text[16];
  for (int i = 0; i < (end.ss_family == AF_INET ? 1 : 4); ++i) {
    std::snprintf(text, sizeof text, "%08X", words[i]);
    out += text;
  }
  std::snprintf(text, sizeof text, ":%04X", ntohs(port));
  return out + text;
}

int64_t AskTcpTable(const Ends& ends) {
  const std::string local = TableText(ends.there), remote = TableText(ends.here);
  std::ifstream table(ends.there.ss_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6");
  std::string line;
  TcpTableLine entry;
  while (std::getline(table, line))
    if (ParseTcpTableLine(line, &entry) && entry.local == local && entry.remote == remote && entry.inode != 0)
      return entry.uid;
  return -1;
}

}  // namespace

bool ParseTcpTableLine(std::string_view line, TcpTableLine* out) {
  std::vector<std::string_view> fields;
  while (fields.size() < 10) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return false;
    line.remove_prefix(begin);
    fields.push_back(line.substr(0, line.find(' ')));
    line.remove_prefix(fields.back().size());
  }
  const auto read = [](std::string_view text, auto* value, int base) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
    return error == std::errc() && end == text.data() + text.size();
  };
  out->local = fields[1];
  out->remote = fields[2];
  return read(fields[3], &out->state, 16) && read(fields[7], &out->uid, 10) && read(fields[9], &out->inode, 10);
}

HttpPeer IdentifyPeer(int socket) {
  HttpPeer peer;
  Ends ends;
  socklen_t size = sizeof ends.here;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&ends.here), &size) != 0) return peer;
  if (ends.here.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    peer.is_local = true;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) peer.uid = credentials.uid;
  } else {
    size = sizeof ends.there;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&ends.there), &size) != 0) return peer;
    ends.here = Unmapped(ends.here);
    ends.there = Unmapped(ends.there);
    peer.address = KeyOf(ends.there);
    peer.is_local = IsLoopback(ends.there);
    if (peer.is_local && AskSockDiag(ends, &peer.uid) == Found::unavailable) peer.uid = AskTcpTable(ends);
    if (!peer.is_local) return peer;
  }
  peer.address = peer.uid >= 0 ? "uid " + std::to_string(peer.uid) : "local";
  return peer;
}

int64_t OwnerOfListener(int port, const std::string& proc) {
  char wanted[8];
  std::snprintf(wanted, sizeof wanted, ":%04X", static_cast<unsigned>(port) & 0xffffu);
  int64_t owner = -1;
  for (const char* name : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream table(proc + name);
    std::string line;
    TcpTableLine entry;
    while (std::getline(table, line)) {
      if (!ParseTcpTableLine(line, &entry) || entry.state != kListening || !entry.local.ends_with(wanted)) continue;
      if (owner >= 0 && owner != entry.uid) return -1;
      owner = entry.uid;
    }
  }
  return owner;
}

}  // namespace tacet
