// SPDX-License-Identifier: Apache-2.0
#include "http/web_access.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "base/text_scan.h"
#include "http/http_connection.h"

namespace tacet {
namespace {

constexpr size_t kMostChecked = 1024;
constexpr int kMostChecking = 4;
constexpr int64_t kTlsLookMs = 5000;

std::string Sha256(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : digest) out.append({kHex[byte >> 4], kHex[byte & 15]});
  return out;
}

bool AreEqual(std::string_view a, std::string_view b) {  // in a time that tells nothing
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > 4096) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  const int size =
      ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  out.resize(static_cast<size_t>(size) - (text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0));
  return out;
}

bool FitsBcrypt(const std::string& password, const std::string& hash) {
  auto room = std::make_unique<crypt_data>();
  std::memset(room.get(), 0, sizeof *room);
  const char* made = ::crypt_r(password.c_str(), hash.c_str(), room.get());
  return made != nullptr && made[0] != '*' && AreEqual(made, hash);
}

std::optional<int64_t> UidOf(const std::string& name) {
  passwd entry{}, *found = nullptr;
  char room[16384];
  if (::getpwnam_r(name.c_str(), &entry, room, sizeof room, &found) == 0 && found != nullptr)
    return int64_t{found->pw_uid};
  const bool digits = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::optional<int64_t>(std::stoll(name)) : std::nullopt;
}

// "node7:9560" -> "node7", "[::1]:9560" -> "::1"
std::string_view HostIn(std::string_view text) {
  if (text.starts_with('[')) return text.substr(1, std::min(text.size(), text.find(']')) - 1);
  return text.substr(0, text.find(':'));
}

HttpReply WhoAsks(bool passwords) {
  HttpReply reply = ErrorReply(401, "authentication required: the web configuration of this service lists who may ask");
  reply.challenge = passwords ? "Basic realm=\"tacet\"" : "Bearer";
  return reply;
}

time_t LatestChange(const TlsServerFiles& files) {
  time_t latest = 0;
  for (const std::string& path : {files.cert_file, files.key_file, files.client_ca_file}) {
    struct stat seen {};
    if (!path.empty() && ::stat(path.c_str(), &seen) == 0) latest = std::max(latest, seen.st_mtime);
  }
  return latest;
}

}  // namespace

WebAccess::WebAccess(WebAccessOptions options, WebConfig config)
    : options_(std::move(options)), config_(std::move(config)), operators_{0, int64_t{::geteuid()}} {
  std::vector<std::string> names = options_.operators;
  if (config_.operators) names.insert(names.end(), config_.operators->begin(), config_.operators->end());
  for (const std::string& name : names)
    if (const auto uid = UidOf(name)) operators_.insert(*uid);
  // Once: a directory service may take its time.
  for (const auto* users : {&config_.basic_auth_users, &config_.bearer_tokens_sha256})
    for (const auto& [name, secret] : *users)
      if (const auto uid = UidOf(name)) name_uids_.emplace(name, *uid);
  for (const auto& [name, uid] : config_.user_ids) name_uids_[name] = uid;
  char own[256] = {};
  if (::gethostname(own, sizeof own - 1) == 0) host_names_.insert(LowerCase(own));
  for (const std::string& name : options_.host_names) host_names_.insert(LowerCase(name));
}

Result<std::unique_ptr<WebAccess>> WebAccess::Make(const WebAccessOptions& options, const HttpAddress& listen) {
  WebConfig config;
  if (!options.config_file.empty()) {
    auto read = ReadWebConfig(options.config_file);
    if (!read) return read.error();
    config = *read;
  }
  const bool reachable = !IsLoopbackName(listen.host);
  if (reachable && !options.insecure && !(config.tls && config.AsksWhoItIs())) {
    const std::string missing = config.tls             ? "the web configuration has no way to authenticate users"
                                : config.AsksWhoItIs() ? "passwords and tokens would cross the network unencrypted"
                                                       : "neither TLS nor users are configured";
    return Error{
        "will not listen on " + Show(listen) + ", which other hosts can reach: " + missing,
        "give a web configuration with --web-config FILE (docs/live.md, \"Access\"), or listen on 127.0.0.1, or "
        "allow it with --insecure"};
  }
  std::unique_ptr<WebAccess> access(new WebAccess(options, std::move(config)));
  if (!IsLoopbackName(listen.host) && !IsAddressLiteral(listen.host))
    access->host_names_.insert(LowerCase(listen.host));
  if (access->config_.tls) {
    auto tls = TlsContext::ForServer(*access->config_.tls);
    if (!tls) return tls.error();
    access->tls_ = *tls;
    access->tls_changed_ = LatestChange(*access->config_.tls);
    access->tls_looked_ms_ = HttpClockMs();
  }
  return access;
}

std::shared_ptr<TlsContext> WebAccess::tls() {
  const std::lock_guard lock(lock_);
  if (!config_.tls || HttpClockMs() - tls_looked_ms_ < kTlsLookMs) return tls_;
  tls_looked_ms_ = HttpClockMs();
  const time_t changed = LatestChange(*config_.tls);
  if (changed == tls_changed_) return tls_;
  auto fresh = TlsContext::ForServer(*config_.tls);
  if (!fresh) return tls_;  // half written: the old one serves until the new one is whole
  tls_ = *fresh;
  tls_changed_ = changed;
  return tls_;
}

Viewer WebAccess::ViewerOfUser(int64_t uid) const {
  if (uid < 0) return {};
  return {operators_.contains(uid), uid, ""};
}

// In a file that names no operators everybody it lets in is one, as with Prometheus' exporters.
Viewer WebAccess::ViewerNamed(const std::string& name) const {
  Viewer viewer{false, -1, name};
  const bool told_apart = config_.operators || !config_.user_ids.empty();
  viewer.sees_all = !told_apart || (config_.operators && std::find(config_.operators->begin(), config_.operators->end(),
                                                                   name) != config_.operators->end());
  if (const auto found = name_uids_.find(name); found != name_uids_.end()) viewer.uid = found->second;
  return viewer;
}

std::optional<std::string> WebAccess::CheckToken(std::string_view token) const {
  const std::string digest = Sha256(token);
  std::optional<std::string> who;
  for (const auto& [name, wanted] : config_.bearer_tokens_sha256)
    if (AreEqual(digest, wanted)) who = name;
  return who;
}

// bcrypt takes long on purpose. What was checked once is remembered by its digest, and only few are checked at a time:
// guessing costs the guesser time, and the service little.
std::optional<std::string> WebAccess::CheckPassword(std::string_view encoded, bool may_be_slow, bool* busy) {
  const auto text = DecodeBase64(encoded);
  if (!text) return std::nullopt;
  const size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string user = text->substr(0, colon), password = text->substr(colon + 1);
  const auto known = config_.basic_auth_users.find(user);
  // Unknown users take as long as known ones.
  const std::string hash = known != config_.basic_auth_users.end()
                               ? known->second
                               : "$2y$10$abcdefghijklmnopqrstuuH3h5oUuQ0mO6y7p0hTtV1m8dFQ7yGzK";
  const std::string digest = Sha256(Sha256(user) + Sha256(password) + hash);
  {
    const std::lock_guard lock(lock_);
    if (const auto found = checked_.find(digest); found != checked_.end()) return found->second;
    if (!may_be_slow) return std::nullopt;
    if (checking_ >= kMostChecking) return *busy = true, std::nullopt;
    ++checking_;
  }
  bool fits = false;
  {
    const std::lock_guard one_at_a_time(check_lock_);
    fits = password.size() <= 72 && FitsBcrypt(password, hash) && known != config_.basic_auth_users.end();
  }
  const std::lock_guard lock(lock_);
  --checking_;
  if (checked_.size() >= kMostChecked) std::erase_if(checked_, [](const auto& entry) { return !entry.second; });
  if (checked_.size() >= kMostChecked) checked_.clear();
  return checked_[digest] = fits ? std::optional<std::string>(user) : std::nullopt;
}

std::optional<std::string> WebAccess::NameOf(const HttpRequest& request, bool may_be_slow, bool* busy) {
  const std::string_view header = request.Header("authorization");
  const std::string scheme = LowerCase(header.substr(0, header.find(' ')));
  const std::string_view value = header.substr(std::min(header.size(), scheme.size() + 1));
  if (scheme == "bearer") return CheckToken(value);
  if (scheme == "basic") return CheckPassword(value, may_be_slow, busy);
  return std::nullopt;
}

bool WebAccess::IsOwnHost(std::string_view host) const {
  const std::string name = LowerCase(HostIn(host));
  return host.empty() || IsAddressLiteral(name) || name == "localhost" || name.ends_with(".localhost") ||
         host_names_.contains(name);
}

// A page of a stranger, open in a browser on this host, may let its own name point here; and any page may ask.
std::optional<HttpReply> WebAccess::RefuseForeignPage(const HttpRequest& request) const {
  const std::string_view origin = request.Header("origin");
  const size_t slashes = origin.find("://");
  const std::string_view origin_host = slashes == std::string_view::npos ? origin : origin.substr(slashes + 3);
  if (!origin.empty() && LowerCase(origin_host) != LowerCase(request.Header("host")))
    return ErrorReply(403, "requests from other origins are refused; only pages of this service may ask");
  return std::nullopt;
}

std::optional<HttpReply> WebAccess::Admit(HttpRequest& request) {
  if (auto refused = RefuseForeignPage(request)) return refused;
  const bool named_users = !config_.basic_auth_users.empty() || !config_.bearer_tokens_sha256.empty();
  const bool has_name = !request.Header("authorization").empty();
  if (named_users && has_name) {
    bool busy = false;
    if (const auto name = NameOf(request, true, &busy)) return request.viewer = ViewerNamed(*name), std::nullopt;
    return busy ? ErrorReply(503, "too many passwords are being checked; try again")
                : WhoAsks(!config_.basic_auth_users.empty());
  }
  if (request.has_client_certificate && !named_users) return request.viewer = {true, -1, "certificate"}, std::nullopt;
  // From here on nobody has shown anything that a browser would not send by itself.
  if (!IsOwnHost(request.Header("host")))
    return ErrorReply(421, "this service does not answer to the name '" +
                               std::string(HostIn(request.Header("host")).substr(0, 100)) +
                               "'; use its address, or start it with --host-name NAME");
  if (request.peer.is_local) return request.viewer = ViewerOfUser(request.peer.uid), std::nullopt;
  if (config_.AsksWhoItIs() || !options_.insecure) return WhoAsks(!config_.basic_auth_users.empty());
  request.viewer = {true, -1, ""};
  return std::nullopt;
}

Viewer WebAccess::ViewerAtOnce(const HttpRequest& request) {
  if (RefuseForeignPage(request)) return {};
  bool busy = false;
  if (!request.Header("authorization").empty()) {
    const auto name = NameOf(request, false, &busy);
    return name ? ViewerNamed(*name) : Viewer{};
  }
  if (!IsOwnHost(request.Header("host"))) return {};
  if (request.peer.is_local) return ViewerOfUser(request.peer.uid);
  return {options_.insecure && !config_.AsksWhoItIs(), -1, ""};
}

}  // namespace tacet
