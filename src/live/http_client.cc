// SPDX-License-Identifier: Apache-2.0
#include "live/http_client.h"

#include <httplib.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace tacet {

using Clock = std::chrono::steady_clock;

// The library's timeouts hold for single reads, so a server that sends a byte a second would hold a thread for ever.
// One thread shuts the sockets of requests that are over their time.
struct HttpClient::Inside {
  std::mutex lock;
  std::condition_variable wake;
  std::multimap<Clock::time_point, httplib::Client*> running;
  bool stop = false, cancelled = false;
  std::thread reaper;

  void Reap() {
    std::unique_lock held(lock);
    while (!stop) {
      if (running.empty()) {
        wake.wait(held);
        continue;
      }
      const auto first = running.begin();
      if (cancelled || first->first <= Clock::now()) {
        if (cancelled)
          for (const auto& [until, client] : running) client->stop();
        else
          first->second->stop();
        if (cancelled) {
          wake.wait_for(held, std::chrono::milliseconds(50));  // some may not have connected yet
          continue;
        }
        auto entry = running.extract(first);
        entry.key() = Clock::now() + std::chrono::milliseconds(100);  // it may not have connected yet
        running.insert(std::move(entry));
      } else {
        const auto until = first->first;  // a copy: the request may end, and its entry go, while this waits
        wake.wait_until(held, until);
      }
    }
  }
};

HttpClient::HttpClient() : inside_(std::make_unique<Inside>()) {
  inside_->reaper = std::thread([raw = inside_.get()] { raw->Reap(); });
}

HttpClient::~HttpClient() {
  {
    const std::lock_guard lock(inside_->lock);
    inside_->stop = true;
  }
  inside_->wake.notify_all();
  inside_->reaper.join();
}

void HttpClient::Cancel() {
  {
    const std::lock_guard lock(inside_->lock);
    inside_->cancelled = true;
  }
  inside_->wake.notify_all();
}

// A request that is watched from its making to its end.
class HttpClient::Timed {
 public:
  Timed(Inside& inside, httplib::Client& client, const HttpLimits& limits)
      : inside_(inside),
        client_(client),
        deadline_(Clock::now() + std::chrono::milliseconds(limits.connect_ms + limits.whole_ms)) {
    client.set_connection_timeout(std::chrono::milliseconds(limits.connect_ms));
    client.set_read_timeout(std::chrono::milliseconds(limits.whole_ms));
    client.set_write_timeout(std::chrono::milliseconds(limits.whole_ms));
    client.set_keep_alive(false);
    {
      const std::lock_guard lock(inside_.lock);
      inside_.running.emplace(deadline_, &client);
      refused_ = inside_.cancelled;
    }
    inside_.wake.notify_all();
  }
  ~Timed() {
    const std::lock_guard lock(inside_.lock);
    std::erase_if(inside_.running, [&](const auto& entry) { return entry.second == &client_; });
  }
  bool IsOver() const { return Clock::now() >= deadline_; }
  bool IsRefused() const { return refused_; }

 private:
  Inside& inside_;
  httplib::Client& client_;
  Clock::time_point deadline_;
  bool refused_ = false;
};

// The library calls all of it "Connection".
static Error NotReached(const HttpAddress& address, httplib::Error error) {
  if (error != httplib::Error::Connection) return {"no answer: " + httplib::to_string(error), "is an agent there?"};
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int unknown = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &found);
  if (unknown != 0) return {"cannot resolve '" + address.host + "': " + ::gai_strerror(unknown), "check the name"};
  ::freeaddrinfo(found);
  return {"cannot connect: nothing listens at " + Show(address) + ", or a firewall is between",
          "an agent listens on loopback only, unless started with --listen 0.0.0.0:PORT"};
}

Result<std::string> HttpClient::Get(const HttpAddress& address, const std::string& path, const HttpLimits& limits) {
  httplib::Client client(address.host, address.port);
  const Timed timed(*inside_, client, limits);
  if (timed.IsRefused()) return Error{"not asked: the program ends", ""};
  std::string body;
  bool too_large = false;
  const auto result = client.Get(path, [&](const char* bytes, size_t size) {
    too_large = body.size() + size > limits.most_bytes;
    if (!too_large) body.append(bytes, size);
    return !too_large && !timed.IsOver();
  });
  if (too_large) return Error{"the answer is larger than " + std::to_string(limits.most_bytes) + " bytes", ""};
  if (timed.IsOver()) return Error{"no whole answer in time", ""};
  if (!result) return NotReached(address, result.error());
  if (result->status != 200) return Error{"answered with HTTP status " + std::to_string(result->status), ""};
  return body;
}

Result<HttpReply> HttpClient::Post(const HttpAddress& address, const HttpPost& post, const HttpLimits& limits) {
  httplib::Client client((post.https ? "https://" : "http://") + Show(address));
  const Timed timed(*inside_, client, limits);
  if (timed.IsRefused()) return Error{"not asked: the program ends", ""};
  httplib::Request request;
  request.method = "POST";
  request.path = post.path;
  for (const auto& [name, value] : post.headers) request.headers.emplace(name, value);
  request.headers.emplace("Content-Type", post.type);
  request.body = post.body;
  HttpReply reply;
  bool too_large = false;
  request.content_receiver = [&](const char* bytes, size_t size, uint64_t, uint64_t) {
    too_large = reply.body.size() + size > limits.most_bytes;
    if (!too_large) reply.body.append(bytes, size);
    return !too_large && !timed.IsOver();
  };
  const auto result = client.send(request);
  if (too_large) return Error{"the answer is larger than " + std::to_string(limits.most_bytes) + " bytes", ""};
  if (timed.IsOver()) return Error{"no whole answer in time", ""};
  if (!result) return NotReached(address, result.error());
  reply.status = result->status;
  reply.type = result->get_header_value("Content-Type");
  return reply;
}

std::string EncodeUrlPath(std::string_view path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain)
      out += c;
    else
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  return out;
}

}  // namespace tacet
