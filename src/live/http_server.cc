// SPDX-License-Identifier: Apache-2.0
#include "live/http_server.h"

#include <httplib.h>

#include <charconv>
#include <thread>

#include "base/json_writer.h"
#include "live/growing_pool.h"

namespace tacet {
namespace {

HttpReply ErrorReply(int status, std::string_view what) {
  JsonWriter json;
  json.BeginObject().Key("error").String(what).EndObject();
  return {status, "application/json", json.Take() + "\n"};
}

HttpRequest RequestOf(const httplib::Request& request) {
  HttpRequest out;
  out.path = request.path;
  for (const auto& [name, value] : request.params) out.query[name] = value;
  return out;
}

void Put(HttpReply reply, httplib::Response& response) {
  response.status = reply.status;
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Cache-Control", "no-store");
  response.set_content(std::move(reply.body), reply.type);
}

// A client that connects and says nothing holds a thread until it is given up: many are needed, and not for long.
constexpr size_t kMostClients = 512;
constexpr int kPatienceS = 2;

class ClientQueue : public httplib::TaskQueue {
 public:
  explicit ClientQueue(size_t threads) : pool_(threads, kMostClients) {}
  using Queued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));  // void, or bool in later releases
  Queued enqueue(std::function<void()> work) override {
    pool_.Add(std::move(work));
    return static_cast<Queued>(true);
  }
  void shutdown() override { pool_.Finish(); }

 private:
  GrowingPool pool_;
};

}  // namespace

HttpReply NotFound(std::string_view what) { return ErrorReply(404, what); }
HttpReply BadRequest(std::string_view what) { return ErrorReply(400, what); }

Result<HttpAddress> ParseHttpAddress(std::string_view text, const HttpAddress& otherwise) {
  const auto wrong = [&] {
    return Error{"'" + std::string(text) + "' is no address", "host:port, for instance 127.0.0.1:9560"};
  };
  HttpAddress address = otherwise;
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return wrong();
    host = text.substr(1, close - 1);
    if (close + 1 < text.size() && text[close + 1] != ':') return wrong();
    port = text.substr(std::min(text.size(), close + 2));
  } else if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  } else if (text.find_first_not_of("0123456789") == std::string_view::npos) {
    host = "";
    port = text;
  }
  if (text.empty()) return wrong();
  if (!host.empty()) address.host = host;
  if (port.empty()) return address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || address.port < 0 || address.port > 65535)
    return wrong();
  return address;
}

std::string Show(const HttpAddress& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

struct HttpServer::Inside {
  httplib::Server server;
  std::thread thread;
  int port = 0;
};

HttpServer::HttpServer() : inside_(std::make_unique<Inside>()) {}
HttpServer::~HttpServer() { Stop(); }
int HttpServer::port() const { return inside_->port; }

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpAddress& address, int threads, Handler handler) {
  std::unique_ptr<HttpServer> made(new HttpServer);
  httplib::Server& server = made->inside_->server;
  server.new_task_queue = [threads] { return new ClientQueue(static_cast<size_t>(threads)); };
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kPatienceS);  // for the first byte, too
  server.set_read_timeout(kPatienceS);
  server.set_write_timeout(5);
  server.set_payload_max_length(1024);
  // The library would share a port that another process listens on; then each would get half of the requests.
  int listening = -1;
  server.set_socket_options([&listening](socket_t socket) {
    listening = socket;
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_pre_routing_handler([handler](const httplib::Request& request, httplib::Response& response) {
    if (request.method == "GET" || request.method == "HEAD")
      Put(handler(RequestOf(request)), response);
    else
      Put(ErrorReply(405, "only GET is answered here"), response);
    return httplib::Server::HandlerResponse::Handled;
  });
  server.set_exception_handler([](const auto&, httplib::Response& response, const std::exception_ptr&) {
    Put(ErrorReply(500, "internal error"), response);
  });
  made->inside_->port = address.port == 0                                 ? server.bind_to_any_port(address.host)
                        : server.bind_to_port(address.host, address.port) ? address.port
                                                                          : -1;
  if (made->inside_->port <= 0)
    return Error{"cannot listen on " + Show(address) + ": the port is in use, or the address is not of this host",
                 "choose another with --listen HOST:PORT"};
  // The library lets five wait to be accepted; a sixth would be answered a second later.
  ::listen(listening, static_cast<int>(kMostClients));
  server.set_socket_options(nullptr);
  made->inside_->thread = std::thread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();
  return made;
}

void HttpServer::Stop() {
  if (!inside_->thread.joinable()) return;
  inside_->server.stop();
  inside_->thread.join();
}

}  // namespace tacet
