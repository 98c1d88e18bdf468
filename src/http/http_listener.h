// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "http/http_address.h"

namespace tacet {

// A listening socket that never blocks; closed at the end. A unix socket's file is removed with it.
class HttpListener {
 public:
  static Result<HttpListener> OnAddress(const HttpAddress& address);
  // Takes the place of a socket file that nobody listens on any more, and of nothing else. All users may connect.
  static Result<HttpListener> OnUnixSocket(const std::string& path);
  HttpListener(HttpListener&& other) noexcept;
  HttpListener& operator=(HttpListener&&) = delete;
  ~HttpListener();
  int socket() const { return socket_; }
  int port() const { return port_; }

 private:
  HttpListener() = default;
  int socket_ = -1, port_ = 0;
  std::string path_;
};

}  // namespace tacet
