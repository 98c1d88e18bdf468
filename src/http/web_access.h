// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/http_address.h"
#include "http/http_message.h"
#include "http/web_config.h"

namespace tacet {

struct WebAccessOptions {
  std::string config_file;                                      // empty: nobody needs to say who they are
  bool insecure = false;                                        // serve other hosts even so
  std::vector<std::string> operators = {"root", "prometheus"};  // users of this host who see all jobs
  std::vector<std::string> host_names;  // what this service is called, beside the host's own names and its addresses
};

// Decides who asks and what they may see.
//
//   a process of this host, loopback or unix socket   the jobs of its user; of all users for root, the user that this
//                                                     program runs as, and operators
//   a name with its password or token                 as the web configuration says
//   anybody else                                      nothing, and with --insecure everything
class WebAccess {
 public:
  // Refuses an address that others can reach without TLS and a way to tell who asks, unless that is asked for.
  static Result<std::unique_ptr<WebAccess>> Make(const WebAccessOptions& options, const HttpAddress& listen);

  // Sets request.viewer, or gives the answer that refuses it. May take a tenth of a second: passwords are slow to
  // check.
  std::optional<HttpReply> Admit(HttpRequest& request);
  // The same for what anybody may know in a short form: never slow, never refused, at worst nobody.
  Viewer ViewerAtOnce(const HttpRequest& request);

  bool uses_tls() const { return static_cast<bool>(config_.tls); }
  // Files are read again when they change, certificates are renewed that way.
  std::shared_ptr<TlsContext> tls();

 private:
  WebAccess(WebAccessOptions options, WebConfig config);
  std::optional<std::string> NameOf(const HttpRequest& request, bool may_be_slow, bool* busy);
  std::optional<std::string> CheckToken(std::string_view token) const;
  std::optional<std::string> CheckPassword(std::string_view encoded, bool may_be_slow, bool* busy);
  Viewer ViewerNamed(const std::string& name) const;
  Viewer ViewerOfUser(int64_t uid) const;
  bool IsOwnHost(std::string_view host) const;
  std::optional<HttpReply> RefuseForeignPage(const HttpRequest& request) const;

  WebAccessOptions options_;
  WebConfig config_;
  std::set<int64_t> operators_;  // uids
  std::map<std::string, int64_t> name_uids_;  // of the names in the web configuration
  std::set<std::string> host_names_;
  std::mutex lock_;
  std::map<std::string, std::optional<std::string>> checked_;  // digest of user and password -> who it is
  int checking_ = 0;
  std::mutex check_lock_;
  std::shared_ptr<TlsContext> tls_;
  int64_t tls_looked_ms_ = 0;
  time_t tls_changed_ = 0;
};

}  // namespace tacet
