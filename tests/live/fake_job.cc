// SPDX-License-Identifier: Apache-2.0
#include "tests/live/fake_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "http/http_client.h"

namespace tacet::fake {

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/tacet-live-XXXXXX";
  if (::mkdtemp(name) == nullptr) std::abort();
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

FakeJob::FakeJob(const std::string& box_dir, const std::string& job, const std::vector<std::string>& arguments,
                 int64_t uid) {
  std::vector<std::string> words = {TACET_HOST_FILE, "--plugin", TACET_PLUGIN_FILE};
  words.insert(words.end(), arguments.begin(), arguments.end());
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::setpgid(0, 0);  // its ranks are ended together with it
  if (uid >= 0 && ::setuid(static_cast<uid_t>(uid)) != 0) ::_exit(126);
  for (const char* name : {"SLURM_JOB_ID", "RANK", "WORLD_SIZE", "TACET_JSON_DIR", "TACET_PROM_DIR"}) ::unsetenv(name);
  ::setenv("TACET_BOX_DIR", box_dir.c_str(), 1);
  ::setenv("TACET_JOB", job.c_str(), 1);
  ::setenv("TACET_BOX_MB", "1", 1);
  const int nothing = ::open("/dev/null", O_WRONLY);
  ::dup2(nothing, STDOUT_FILENO);
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  ::execv(raw[0], raw.data());
  ::_exit(127);
}

FakeJob::~FakeJob() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool FakeJob::IsRunning() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

std::string AskText(int port, const std::string& path) {
  HttpClient client;
  auto body = client.Get({"127.0.0.1", port}, path, {.connect_ms = 10000, .whole_ms = 20000});
  return body ? *body : "";
}

std::string AskTextAs(int64_t uid, int port, const std::string& path) {
  int ends[2];
  if (::pipe(ends) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(static_cast<uid_t>(uid)) != 0) ::_exit(1);
    const std::string body = AskText(port, path);
    const bool sent = ::write(ends[1], body.data(), body.size()) == static_cast<ssize_t>(body.size());
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  std::string body;
  char piece[4096];
  for (ssize_t got = 1; got > 0;) {
    got = ::read(ends[0], piece, sizeof piece);
    if (got > 0) body.append(piece, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return body;
}

JsonValue AskJson(int port, const std::string& path) {
  JsonValue document;
  bool truncated = false;
  ParseJson(AskText(port, path), &document, &truncated);
  return document;
}

JsonValue AskUntil(int port, const std::string& path, std::chrono::seconds limit,
                   const std::function<bool(const JsonValue&)>& pleases) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    JsonValue document = AskJson(port, path);
    if (pleases(document) || std::chrono::steady_clock::now() > end) return document;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

const JsonValue* ValueAt(const JsonValue& document, std::string_view path) {
  const JsonValue* value = &document;
  while (value != nullptr && !path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    value = value->is_object() ? value->Find(name) : nullptr;
  }
  return value;
}

std::string TextAt(const JsonValue& document, std::string_view path) {
  const JsonValue* value = ValueAt(document, path);
  return value == nullptr ? "" : std::string(value->Text());
}

std::vector<int> RanksAt(const JsonValue& document, std::string_view path) {
  std::vector<int> ranks;
  if (const JsonValue* value = ValueAt(document, path))
    for (const JsonValue& rank : value->items) ranks.push_back(static_cast<int>(rank.Int(-1)));
  return ranks;
}

}  // namespace tacet::fake
