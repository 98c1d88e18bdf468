// SPDX-License-Identifier: Apache-2.0
#include "tests/live/fake_job.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "http/http_client.h"

namespace tacet::fake {

namespace {

bool IsOfAJob(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return name == "SLURM_JOB_ID" || name == "RANK" || name == "WORLD_SIZE" || name.substr(0, 6) == "TACET_";
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Sends the request and hands the answer on as it comes. Allocates nothing.
[[noreturn]] void AskInChild(uid_t uid, int port, std::string_view request, int out) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::alarm(20);
  const int server = ::setuid(uid) == 0 ? ::socket(AF_INET, SOCK_STREAM, 0) : -1;
  if (server < 0 || ::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ::_exit(1);
  if (::send(server, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) ::_exit(1);
  char piece[4096];
  for (ssize_t got = 0; (got = ::recv(server, piece, sizeof piece, 0)) > 0;)
    if (::write(out, piece, static_cast<size_t>(got)) != got) ::_exit(1);
  ::_exit(0);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/tacet-live-XXXXXX";
  if (::mkdtemp(name) == nullptr) std::abort();
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

// A child of a process with threads may not allocate before it becomes another program: a thread that is not there any
// more may have held the allocator's lock.
FakeJob::FakeJob(const std::string& box_dir, const std::string& job, const std::vector<std::string>& arguments,
                 int64_t uid) {
  std::vector<std::string> words = {TACET_HOST_FILE, "--plugin", TACET_PLUGIN_FILE};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = {"TACET_BOX_DIR=" + box_dir, "TACET_JOB=" + job, "TACET_BOX_MB=1"};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!IsOfAJob(*variable)) variables.emplace_back(*variable);
  const std::vector<char*> argv = Pointers(words), envp = Pointers(variables);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::setpgid(0, 0);  // its ranks are ended together with it
  if (uid >= 0 && ::setuid(static_cast<uid_t>(uid)) != 0) ::_exit(126);
  const int nothing = ::open("/dev/null", O_WRONLY);
  ::dup2(nothing, STDOUT_FILENO);
  ::execve(argv[0], argv.data(), envp.data());
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
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\nConnection: close\r\n\r\n";
  const pid_t child = ::fork();
  if (child == 0) AskInChild(static_cast<uid_t>(uid), port, request, ends[1]);
  ::close(ends[1]);
  std::string answer;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], piece, sizeof piece)) > 0;)
    answer.append(piece, static_cast<size_t>(got));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  const size_t body = answer.find("\r\n\r\n");
  return answer.rfind("HTTP/1.1 200", 0) == 0 && body != std::string::npos ? answer.substr(body + 4) : "";
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
