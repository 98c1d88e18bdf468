// SPDX-License-Identifier: Apache-2.0
#include "http/http_message.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "http/http_client.h"
#include "http/peer_identity.h"

namespace tacet {
namespace {

using State = HttpHead::State;

TEST(HttpHead, ReadsPathQueryAndHeaders) {
  const HttpHead head =
      ParseHttpHead("GET /a%20b?job=x%2Fy&n=1+2 HTTP/1.1\r\nHost: node7:9560\r\nX-Y:  z \r\n\r\nrest");
  ASSERT_EQ(head.state, State::whole);
  EXPECT_EQ(head.request.path, "/a b");
  EXPECT_EQ(head.request.Query("job"), "x/y");
  EXPECT_EQ(head.request.Query("n"), "1 2");
  EXPECT_EQ(head.request.Header("host"), "node7:9560");
  EXPECT_EQ(head.request.Header("x-y"), "z");
  EXPECT_TRUE(head.request.keep_alive);
  EXPECT_FALSE(ParseHttpHead("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").request.keep_alive);
  EXPECT_FALSE(ParseHttpHead("GET / HTTP/1.0\r\n\r\n").request.keep_alive);
}

TEST(HttpHead, EveryPrefixOfARequestIsIncomplete) {
  const std::string whole = "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n";
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(ParseHttpHead(whole.substr(0, size)).state, State::incomplete) << size;
  EXPECT_EQ(ParseHttpHead(whole).state, State::whole);
}

TEST(HttpHead, RefusesWhatIsTooLongTooManyOrMalformed) {
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 65; ++i) many += "A: b\r\n";
  EXPECT_EQ(ParseHttpHead(many + "\r\n").status, 431);
  EXPECT_EQ(ParseHttpHead("GET / HTTP/1.1\r\nA: " + std::string(kMostHeadBytes, 'x')).status, 431);
  for (const std::string& bad :
       {std::string("\x16\x03\x01\x02"), std::string("GET\r\n\r\n"), std::string("GET / SPDY/3\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n folded\r\n\r\n"), std::string("GET / HTTP/1.1\nHost: a\n\n"),
        std::string("GET /%zz HTTP/1.1\r\n\r\n"), std::string("GET x HTTP/1.1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"),
        std::string("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), std::string("GET /%00 HTTP/1.1\r\n\r\n")})
    EXPECT_EQ(ParseHttpHead(bad).state, State::bad) << bad;
}

TEST(HttpReply, ForbidsSniffingFramingCachingAndRanges) {
  const std::string head = WriteReplyHead({200, "text/html", "x"}, true);
  for (const char* wanted :
       {"nosniff", "frame-ancestors 'none'", "no-store", "Accept-Ranges: none", "Content-Length: 1\r\n"})
    EXPECT_NE(head.find(wanted), std::string::npos) << wanted;
}

std::string ReadInPieces(std::string_view bytes, size_t piece, uint64_t most = 1000) {
  HttpAnswerReader reader(most);
  auto state = HttpAnswerReader::State::more;
  for (size_t at = 0; at < bytes.size() && state == HttpAnswerReader::State::more; at += piece)
    state = reader.Take(bytes.substr(at, piece));
  if (state == HttpAnswerReader::State::more) state = reader.End();
  return state == HttpAnswerReader::State::whole       ? reader.reply.body
         : state == HttpAnswerReader::State::too_large ? "too large"
                                                       : "bad";
}

TEST(HttpAnswerReader, ReadsAnswersOfAnyFormInPiecesOfAnySize) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
  for (size_t piece = 1; piece < 40; ++piece) {
    EXPECT_EQ(ReadInPieces(head + "Content-Length: 5\r\n\r\nhello and more", piece), "hello");
    EXPECT_EQ(ReadInPieces(head + "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", piece),
              "hello");
    EXPECT_EQ(ReadInPieces(head + "\r\nhello", piece), "hello");
    EXPECT_EQ(ReadInPieces(head + "Content-Length: 50\r\n\r\nhello", piece), "bad");
    EXPECT_EQ(ReadInPieces(head + "Content-Length: 99999999999\r\n\r\nhello", piece), "too large");
    EXPECT_EQ(ReadInPieces(head + "Transfer-Encoding: chunked\r\n\r\nffffffffff\r\nhel", piece), "too large");
    EXPECT_EQ(ReadInPieces("SSH-2.0-OpenSSH_9\r\n\r\n\r\n", piece), "bad");
  }
}

// A client of this process on loopback, and what is accepted of it.
class LoopbackPair {
 public:
  LoopbackPair() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener, plain, size) == 0 && ::listen(listener, 1) == 0 &&
        ::getsockname(listener, plain, &size) == 0 && ::connect(client, plain, size) == 0)
      accepted = ::accept(listener, nullptr, nullptr);
    ::close(listener);
  }
  ~LoopbackPair() {
    if (client >= 0) ::close(client);
    if (accepted >= 0) ::close(accepted);
  }
  int client = -1, accepted = -1;
};

TEST(PeerIdentity, IsTheUserOfTheSocketAtTheOtherEnd) {
  const LoopbackPair pair;
  ASSERT_GE(pair.accepted, 0);
  const HttpPeer peer = IdentifyPeer(pair.accepted);
  EXPECT_TRUE(peer.is_local);
  EXPECT_EQ(peer.uid, static_cast<int64_t>(::geteuid()));
}

// The kernel shows a socket that nobody holds any more as root's; whoever sends and closes at once would be root.
TEST(PeerIdentity, AClientThatHasClosedItsSocketAlreadyIsNobody) {
  LoopbackPair pair;
  ASSERT_GE(pair.accepted, 0);
  ASSERT_EQ(::send(pair.client, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  ::close(std::exchange(pair.client, -1));
  const HttpPeer peer = IdentifyPeer(pair.accepted);
  EXPECT_TRUE(peer.is_local);
  EXPECT_EQ(peer.uid, -1);
}

TEST(PeerIdentity, ReadsTheTableOfConnections) {
  TcpTableLine line;
  ASSERT_TRUE(ParseTcpTableLine(
      "   3: 0100007F:9BE4 0100007F:DB9B 01 00000000:00000000 00:00000000 00000000  1004        0 18433 2 0", &line));
  EXPECT_EQ(line.local, "0100007F:9BE4");
  EXPECT_EQ(line.uid, 1004);
  EXPECT_EQ(line.inode, 18433u);
  EXPECT_FALSE(ParseTcpTableLine("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when", &line));
  EXPECT_FALSE(ParseTcpTableLine("", &line));
}

}  // namespace
}  // namespace tacet
