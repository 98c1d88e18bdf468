// SPDX-License-Identifier: Apache-2.0
#include "http/http_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/fair_queue.h"
#include "http/http_connection.h"
#include "http/http_listener.h"
#include "http/peer_identity.h"

namespace tacet {
namespace {

constexpr uint64_t kWakeId = 0, kAddressId = 1, kUnixId = 2, kFirstClientId = 16;
constexpr int kEventsAtOnce = 256, kAcceptsAtOnce = 128;
constexpr int64_t kSweepMs = 100;
constexpr int kRequestsAtOnce = 16;  // of one client, before the others get their turn

}  // namespace

class HttpServer::Inside {
 public:
  Inside(HttpServerOptions options, Handler handler, HttpListener listener)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        address_(std::move(listener)),
        // Fewer wait than may be connected, so there is always one that can give way.
        queue_(std::max(1u, options_.workers),
               std::min(options_.limits.waiting_requests, options_.limits.connections / 2),
               options_.limits.waiting_requests_of_one) {}
  ~Inside() { Stop(); }

  Result<bool> Start();
  void Stop();
  int port() const { return address_.port(); }

 private:
  struct Done {
    uint64_t id = 0;
    bool handshake = false, head_only = false;
    StreamStep step = StreamStep::done;
    HttpReply reply;
  };
  void Loop();
  bool Watch(int fd, uint64_t id, uint32_t events, int how);
  void AcceptFrom(const HttpListener& listener, bool plain);
  void Welcome(int socket, bool plain);
  bool MakeRoom();
  void Attend(HttpConnection& client);
  void Hand(HttpConnection& client, HttpRequest request);
  void HandHandshake(HttpConnection& client);
  void TakeDone();
  void Put(Done done);
  void Deliver(HttpConnection& client, HttpReply reply, bool head_only);
  bool HasRoomFor(uint64_t bytes);
  void Settle(HttpConnection& client);
  void Sweep();
  void Drop(uint64_t id);

  HttpServerOptions options_;
  Handler handler_;
  HttpListener address_;
  std::optional<HttpListener> unix_;
  int epoll_ = -1, wake_ = -1;
  std::atomic<bool> stop_{false};
  std::unordered_map<uint64_t, std::unique_ptr<HttpConnection>> clients_;
  std::map<std::string, size_t> held_;  // connections, by peer
  uint64_t next_id_ = kFirstClientId;
  std::vector<uint64_t> again_;  // clients with requests in their buffers, of which epoll knows nothing
  std::mutex done_lock_;
  std::vector<Done> done_;
  FairQueue queue_;
  std::thread thread_;
};

Result<bool> HttpServer::Inside::Start() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!options_.unix_socket.empty()) {
    auto listener = HttpListener::OnUnixSocket(options_.unix_socket);
    if (!listener) return listener.error();
    unix_.emplace(std::move(*listener));
    Watch(unix_->socket(), kUnixId, EPOLLIN, EPOLL_CTL_ADD);
  }
  if (epoll_ < 0 || wake_ < 0 || !Watch(wake_, kWakeId, EPOLLIN, EPOLL_CTL_ADD) ||
      !Watch(address_.socket(), kAddressId, EPOLLIN, EPOLL_CTL_ADD))
    return Error{"cannot serve: too many open files", "raise the limit of open files"};
  thread_ = std::thread([this] { Loop(); });
  return true;
}

void HttpServer::Inside::Stop() {
  stop_ = true;
  const uint64_t one = 1;
  const bool woken = wake_ >= 0 && ::write(wake_, &one, sizeof one) > 0;  // else it wakes by itself, a little later
  (void)woken;
  if (thread_.joinable()) thread_.join();
  queue_.Finish();
  clients_.clear();
  for (int* fd : {&epoll_, &wake_})
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
}

bool HttpServer::Inside::Watch(int fd, uint64_t id, uint32_t events, int how) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll_, how, fd, &event) == 0;
}

void HttpServer::Inside::Loop() {
  std::vector<epoll_event> events(kEventsAtOnce);
  int64_t sweep_at = 0;
  while (!stop_) {
    const int patience = again_.empty() ? static_cast<int>(kSweepMs) : 0;
    const int count = ::epoll_wait(epoll_, events.data(), kEventsAtOnce, patience);
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kAddressId) AcceptFrom(address_, false);
      if (id == kUnixId) AcceptFrom(*unix_, true);
      if (id == kWakeId) TakeDone();
      if (const auto found = clients_.find(id); found != clients_.end()) Attend(*found->second);
    }
    for (const uint64_t id : std::exchange(again_, {}))
      if (const auto found = clients_.find(id); found != clients_.end()) Attend(*found->second);
    if (HttpClockMs() < sweep_at) continue;
    sweep_at = HttpClockMs() + kSweepMs;
    Sweep();
  }
}

// A few at a time, so that those who are here already get their turn.
void HttpServer::Inside::AcceptFrom(const HttpListener& listener, bool plain) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    if (clients_.size() >= options_.limits.connections && !MakeRoom()) return;
    const int socket = ::accept4(listener.socket(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      Welcome(socket, plain);
      continue;
    }
    if (errno == ECONNABORTED || errno == EINTR) continue;
    if (errno != EAGAIN) MakeRoom();  // out of files: one that waits for its client gives way
    return;
  }
}

void HttpServer::Inside::Welcome(int socket, bool plain) {
  HttpPeer peer = IdentifyPeer(socket);
  const auto context = plain || !options_.tls ? nullptr : options_.tls();
  auto stream = context ? std::make_unique<ByteStream>(socket, context) : std::make_unique<ByteStream>(socket);
  const uint64_t id = next_id_++;
  ++held_[peer.address];
  auto client = std::make_unique<HttpConnection>(id, std::move(stream), std::move(peer), options_.limits);
  HttpConnection& made = *clients_.emplace(id, std::move(client)).first->second;
  if (!Watch(socket, id, EPOLLIN, EPOLL_CTL_ADD)) return Drop(id);
  Attend(made);  // most have sent their request already
}

// Whoever holds most loses the connection that has waited longest for its client.
bool HttpServer::Inside::MakeRoom() {
  const int64_t now = HttpClockMs();
  const HttpConnection* victim = nullptr;
  size_t most = 0;
  for (const auto& [id, client] : clients_) {
    if (!client->MayBeEvicted(now)) continue;
    const size_t held = held_[client->peer().address];
    const bool worse =
        victim == nullptr || held > most ||
        (held == most && std::pair(client->since_ms(), client->id()) < std::pair(victim->since_ms(), victim->id()));
    if (worse) victim = client.get(), most = held;
  }
  if (victim == nullptr) return false;
  Drop(victim->id());
  return true;
}

void HttpServer::Inside::Attend(HttpConnection& client) {
  using State = HttpConnection::State;
  if (client.state() == State::working) return;
  if (client.state() == State::handshaking) return HandHandshake(client);
  if (client.state() == State::writing) client.Send();
  HttpRequest request;
  for (int i = 0; client.state() == State::reading || client.state() == State::leaving; ++i) {
    if (i == kRequestsAtOnce) {
      again_.push_back(client.id());
      break;
    }
    if (!client.TakeRequest(&request)) break;
    Hand(client, std::exchange(request, {}));
  }
  Settle(client);
}

// While a worker has it, nothing is heard of it: with level triggers a client that sends on would keep the loop busy.
void HttpServer::Inside::Settle(HttpConnection& client) {
  using State = HttpConnection::State;
  if (client.state() == State::closed) return Drop(client.id());
  // One shot: that it hung up is told once, not again and again.
  const uint32_t events = client.state() == State::working ? static_cast<uint32_t>(EPOLLONESHOT)
                          : client.WantsWrite()            ? static_cast<uint32_t>(EPOLLOUT)
                                                           : static_cast<uint32_t>(EPOLLIN);
  if (!Watch(client.stream().socket(), client.id(), events, EPOLL_CTL_MOD)) Drop(client.id());
}

void HttpServer::Inside::Hand(HttpConnection& client, HttpRequest request) {
  const bool head_only = request.method == "HEAD";
  if (!head_only && request.method != "GET") return client.Answer(ErrorReply(405, "only GET is answered here"), false);
  if (options_.at_once)
    if (auto reply = options_.at_once(request)) return client.Answer(std::move(*reply), head_only);
  auto work = [this, id = client.id(), head_only, request = std::move(request)]() mutable {
    Done done{id, false, head_only, StreamStep::done, {}};
    try {
      std::optional<HttpReply> refused;
      if (options_.gate) refused = options_.gate(request);
      done.reply = refused ? std::move(*refused) : handler_(request);
    } catch (...) {  // out of memory, say: the request is lost, and nothing else
      done.reply = ErrorReply(500, "internal error");
    }
    Put(std::move(done));
  };
  if (!queue_.Add(client.peer().address, std::move(work)))
    client.Answer(ErrorReply(503, "too many requests are waiting; try again"), head_only);
}

// Signing costs a millisecond; no client makes the others wait for it.
void HttpServer::Inside::HandHandshake(HttpConnection& client) {
  client.BeginHandshake();
  const bool taken = queue_.Add(client.peer().address, [this, id = client.id(), &stream = client.stream()] {
    Put({id, true, false, stream.Handshake(), {}});
  });
  if (!taken) client.EndHandshake(StreamStep::closed);
  Settle(client);
}

void HttpServer::Inside::Put(Done done) {
  {
    const std::lock_guard lock(done_lock_);
    done_.push_back(std::move(done));
  }
  const uint64_t one = 1;
  if (::write(wake_, &one, sizeof one) < 0) return;  // full: it wakes anyway
}

void HttpServer::Inside::TakeDone() {
  uint64_t count = 0;
  if (::read(wake_, &count, sizeof count) < 0) count = 0;
  std::vector<Done> done;
  {
    const std::lock_guard lock(done_lock_);
    done.swap(done_);
  }
  for (Done& one : done) {
    const auto found = clients_.find(one.id);
    if (found == clients_.end()) continue;
    if (one.handshake)
      found->second->EndHandshake(one.step);
    else
      Deliver(*found->second, std::move(one.reply), one.head_only);
    // What came behind the request, or with the handshake, may lie in buffers already.
    if (found->second->state() == HttpConnection::State::reading)
      Attend(*found->second);
    else
      Settle(*found->second);
  }
}

void HttpServer::Inside::Deliver(HttpConnection& client, HttpReply reply, bool head_only) {
  if (!head_only && !HasRoomFor(reply.body.size())) reply = ErrorReply(503, "too many answers are waiting to be read");
  client.Answer(std::move(reply), head_only);
}

// Those who read nothing give way, the one that holds most first.
bool HttpServer::Inside::HasRoomFor(uint64_t bytes) {
  uint64_t unsent = 0;
  for (const auto& [id, client] : clients_) unsent += client->unsent_bytes();
  const int64_t now = HttpClockMs();
  while (unsent + bytes > options_.limits.answer_bytes) {
    const HttpConnection* victim = nullptr;
    for (const auto& [id, client] : clients_)
      if (client->state() == HttpConnection::State::writing && client->MayBeEvicted(now) &&
          (victim == nullptr || client->unsent_bytes() > victim->unsent_bytes()))
        victim = client.get();
    if (victim == nullptr) return false;
    unsent -= victim->unsent_bytes();
    Drop(victim->id());
  }
  return true;
}

void HttpServer::Inside::Sweep() {
  const int64_t now = HttpClockMs();
  std::vector<uint64_t> over;
  for (const auto& [id, client] : clients_)
    if (client->IsOver(now)) over.push_back(id);
  for (const uint64_t id : over) Drop(id);
}

void HttpServer::Inside::Drop(uint64_t id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  const auto held = held_.find(found->second->peer().address);
  if (held != held_.end() && --held->second == 0) held_.erase(held);
  clients_.erase(found);  // closing the socket takes it out of epoll
}

HttpServer::HttpServer() = default;
HttpServer::~HttpServer() { Stop(); }
int HttpServer::port() const { return inside_->port(); }
void HttpServer::Stop() {
  if (inside_) inside_->Stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options, Handler handler) {
  auto listener = HttpListener::OnAddress(options.listen);
  if (!listener) return listener.error();
  std::unique_ptr<HttpServer> made(new HttpServer);
  made->inside_ = std::make_unique<Inside>(std::move(options), std::move(handler), std::move(*listener));
  auto started = made->inside_->Start();
  if (!started) return started.error();
  return made;
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpAddress& address, unsigned workers, Handler handler) {
  HttpServerOptions options;
  options.listen = address;
  options.workers = workers;
  return Start(std::move(options), std::move(handler));
}

}  // namespace tacet
