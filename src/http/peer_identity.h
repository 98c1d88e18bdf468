// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "http/http_message.h"

namespace tacet {

// Who is at the other end of an accepted connection. For a process of this host the kernel tells its user: by
// SO_PEERCRED of a unix socket, by sock_diag (or /proc/net/tcp) of a loopback connection. A process that has closed its
// end already is nobody: the kernel shows such sockets as root's.
HttpPeer IdentifyPeer(int socket);

// The user whose process listens on a port of this host; -1 nobody, or users that differ.
int64_t OwnerOfListener(int port, const std::string& proc = "/proc");

// "  2: 0100007F:DB9B 0100007F:9BE4 01 00000000:00000000 00:00000000 00000000  1000  0 18433 ..." of /proc/net/tcp.
struct TcpTableLine {
  std::string local, remote;  // "0100007F:DB9B"
  int state = 0;              // 1 established, 10 listening
  int64_t uid = -1;
  uint64_t inode = 0;  // 0: no process holds it any more
};
bool ParseTcpTableLine(std::string_view line, TcpTableLine* out);

}  // namespace tacet
