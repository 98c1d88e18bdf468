// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json_reader.h"

// For the tests of agent and server: a folder, a job of the stand-in, and answers over HTTP.
namespace tacet::fake {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// plugin_host as a process of its own, with its ranks; all of them end with it.
class FakeJob {
 public:
  // As another user where `uid` is not -1, which only root may ask for.
  FakeJob(const std::string& box_dir, const std::string& job, const std::vector<std::string>& arguments,
          int64_t uid = -1);
  ~FakeJob();
  FakeJob(const FakeJob&) = delete;
  FakeJob& operator=(const FakeJob&) = delete;
  bool IsRunning();

 private:
  pid_t pid_ = -1;
};

// Asks until the answer pleases or the time is over; gives the last one.
JsonValue AskUntil(int port, const std::string& path, std::chrono::seconds limit,
                   const std::function<bool(const JsonValue&)>& pleases);
JsonValue AskJson(int port, const std::string& path);
std::string AskText(int port, const std::string& path);
// The same from a process of another user.
std::string AskTextAs(int64_t uid, int port, const std::string& path);

// "verdict.status" of a document; empty where there is none.
std::string TextAt(const JsonValue& document, std::string_view path);
std::vector<int> RanksAt(const JsonValue& document, std::string_view path);
const JsonValue* ValueAt(const JsonValue& document, std::string_view path);

}  // namespace tacet::fake
