// SPDX-License-Identifier: Apache-2.0
#include "http/http_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

namespace tacet {
namespace {

using HttpTime = std::chrono::steady_clock::time_point;

HttpTime Later(int64_t ms) { return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms); }

enum class Waited { ready, over, cancelled };

Waited WaitFor(int socket, short events, int cancel, HttpTime until) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd entries[2] = {{socket, events, 0}, {cancel, POLLIN, 0}};
    const int ready = ::poll(entries, 2, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 600'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (entries[1].revents != 0) return Waited::cancelled;
    if (ready > 0) return Waited::ready;
    return Waited::over;
  }
}

Error CancelledError() { return {"not asked: the program is ending", ""}; }

// The first address that takes the connection.
Result<int> ConnectTo(const HttpAddress& address, int cancel, int64_t limit_ms) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int unknown = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (unknown != 0) return Error{"cannot resolve '" + address.host + "': " + ::gai_strerror(unknown), "check the name"};
  const HttpTime until = Later(limit_ms);
  int socket = -1;
  bool cancelled = false;
  for (const addrinfo* one = found; one != nullptr && socket < 0 && !cancelled; one = one->ai_next) {
    socket = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, one->ai_protocol);
    if (socket < 0) continue;
    bool there = ::connect(socket, one->ai_addr, one->ai_addrlen) == 0;
    if (!there && errno == EINPROGRESS) {
      const Waited waited = WaitFor(socket, POLLOUT, cancel, until);
      int error = 0;
      socklen_t size = sizeof error;
      cancelled = waited == Waited::cancelled;
      there = waited == Waited::ready && ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    }
    if (!there) ::close(socket), socket = -1;
  }
  ::freeaddrinfo(found);
  if (cancelled) return CancelledError();
  if (socket < 0)
    return Error{"cannot connect: nothing listens at " + Show(address) + ", or a firewall is in the way",
                 "an agent listens on loopback only, unless started with --listen 0.0.0.0:PORT"};
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

Result<std::string> ReadSecretLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line) || line.size() > 4096)
    return Error{"cannot read '" + path + "'", "name a file of one line that this user can read"};
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  if (line.empty()) return Error{"'" + path + "' has an empty first line", ""};
  return line;
}

std::string Base64(const std::string& text) {
  std::string out((text.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  out.resize(static_cast<size_t>(std::max(0, size)));
  return out;
}

}  // namespace

Result<HttpCredentials> ReadHttpCredentials(const HttpCredentialFiles& files) {
  HttpCredentials credentials;
  if (!files.token_file.empty() && !files.user_file.empty())
    return Error{"both a token and a user are given", "give only one of them"};
  if (!files.token_file.empty()) {
    auto token = ReadSecretLine(files.token_file);
    if (!token) return token.error();
    credentials.authorization = "Bearer " + *token;
  }
  if (!files.user_file.empty()) {
    auto user = ReadSecretLine(files.user_file);
    if (!user) return user.error();
    if (user->find(':') == std::string::npos)
      return Error{"'" + files.user_file + "' has no user", "one line: user:password"};
    credentials.authorization = "Basic " + Base64(*user);
  }
  if (!files.use_tls && files.tls.ca_file.empty() && files.tls.cert_file.empty()) return credentials;
  auto tls = TlsContext::ForClient(files.tls);
  if (!tls) return tls.error();
  credentials.tls = *tls;
  return credentials;
}

HttpClient::HttpClient(HttpCredentials credentials)
    : credentials_(std::move(credentials)), cancel_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

HttpClient::~HttpClient() {
  if (cancel_ >= 0) ::close(cancel_);
}

void HttpClient::Cancel() {
  const uint64_t one = 1;
  if (::write(cancel_, &one, sizeof one) < 0) return;  // it is readable already
}

// One exchange on a connection of its own.
struct HttpClient::Exchange {
  ByteStream& stream;
  int cancel;
  HttpTime until;
  std::string host;

  Result<bool> Wait(StreamStep step) {
    if (step == StreamStep::closed) {
      if (stream.is_tls() && !stream.trouble().empty())
        return Error{"TLS with " + host + " failed: " + stream.trouble(),
                     "is its certificate signed by the named authority, and for this name?"};
      return Error{"no answer: the connection was closed",
                   stream.is_tls() ? "does it use TLS?" : "is an agent there? does it require TLS?"};
    }
    switch (WaitFor(stream.socket(), step == StreamStep::want_read ? POLLIN : POLLOUT, cancel, until)) {
      case Waited::cancelled: return CancelledError();
      case Waited::over: return Error{"no complete answer in time", ""};
      default: return true;
    }
  }

  Result<bool> Handshake() {
    for (;;) {
      const StreamStep step = stream.Handshake();
      if (step == StreamStep::done) return true;
      if (auto waited = Wait(step); !waited) return waited;
    }
  }

  Result<bool> Send(std::string_view bytes) {
    while (!bytes.empty()) {
      size_t put = 0;
      const StreamStep step = stream.Write(bytes.data(), bytes.size(), &put);
      bytes.remove_prefix(put);
      if (step == StreamStep::closed) return true;  // it may have answered before it closed
      if (step != StreamStep::done)
        if (auto waited = Wait(step); !waited) return waited;
    }
    return true;
  }

  Result<HttpReply> Receive(uint64_t most_bytes) {
    using State = HttpAnswerReader::State;
    HttpAnswerReader reader(most_bytes);
    std::string piece(65536, '\0');
    for (State state = State::more;;) {
      size_t got = 0;
      const StreamStep step = stream.Read(piece.data(), piece.size(), &got);
      if (step == StreamStep::done) state = reader.Take({piece.data(), got});
      if (step == StreamStep::closed) state = reader.End();
      if (state == State::whole) return std::move(reader.reply);
      if (state == State::too_large)
        return Error{"the answer is larger than " + std::to_string(most_bytes) + " bytes", ""};
      if (state == State::bad && step != StreamStep::closed)
        return Error{"the answer is not HTTP", "is an agent there?"};
      if (std::chrono::steady_clock::now() >= until) return Error{"no complete answer in time", ""};
      if (step == StreamStep::done) continue;
      if (auto waited = Wait(step); !waited) return waited.error();
    }
  }
};

Result<HttpReply> HttpClient::Ask(const HttpAddress& address, std::string request, std::shared_ptr<TlsContext> tls,
                                  const HttpLimits& limits) {
  auto socket = ConnectTo(address, cancel_, limits.connect_ms);
  if (!socket) return socket.error();
  auto stream =
      tls ? std::make_unique<ByteStream>(*socket, std::move(tls), address.host) : std::make_unique<ByteStream>(*socket);
  Exchange exchange{*stream, cancel_, Later(limits.whole_ms), Show(address)};
  if (auto done = exchange.Handshake(); !done) return done.error();
  if (auto done = exchange.Send(request); !done) return done.error();
  return exchange.Receive(limits.most_bytes);
}

Result<std::string> HttpClient::Get(const HttpAddress& address, const std::string& path, const HttpLimits& limits) {
  std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + Show(address) + "\r\nConnection: close\r\n";
  if (!credentials_.authorization.empty()) request += "Authorization: " + credentials_.authorization + "\r\n";
  auto reply = Ask(address, request + "\r\n", credentials_.tls, limits);
  if (!reply) return reply.error();
  if (reply->status == 401) return Error{"it requires credentials (HTTP status 401)", "give it a token or a user"};
  if (reply->status != 200) return Error{"answered with HTTP status " + std::to_string(reply->status), ""};
  return std::move(reply->body);
}

Result<HttpReply> HttpClient::Post(const HttpAddress& address, const HttpPost& post, const HttpLimits& limits) {
  std::shared_ptr<TlsContext> tls = post.https ? credentials_.tls : nullptr;
  if (post.https && !tls) {
    auto usual = TlsContext::ForClient({});
    if (!usual) return usual.error();
    tls = *usual;
  }
  std::string request = "POST " + post.path + " HTTP/1.1\r\nHost: " + Show(address) + "\r\nConnection: close\r\n";
  for (const auto& [name, value] : post.headers) request.append(name).append(": ").append(value).append("\r\n");
  request += "Content-Type: " + post.type + "\r\nContent-Length: " + std::to_string(post.body.size()) + "\r\n\r\n";
  return Ask(address, request + post.body, std::move(tls), limits);
}

}  // namespace tacet
