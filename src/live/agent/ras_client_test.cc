// SPDX-License-Identifier: Apache-2.0
#include "live/agent/ras_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/mapped_file.h"
#include "evidence/load.h"

namespace tacet {
namespace {

// Listens like a RAS thread: takes one question, gives one answer, closes.
class FakeRas {
 public:
  FakeRas(std::string answer, bool silent) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 4), 0);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer), silent] {
      const int client = ::accept(socket_, nullptr, nullptr);
      char piece[256];
      while (question_.find("STATUS\n") == std::string::npos) {
        const ssize_t got = ::recv(client, piece, sizeof piece, 0);
        if (got <= 0) break;
        question_.append(piece, static_cast<size_t>(got));
      }
      if (silent)
        while (::recv(client, piece, sizeof piece, 0) > 0) continue;  // until the asker gives up
      else
        EXPECT_EQ(::send(client, answer.data(), answer.size(), 0), static_cast<ssize_t>(answer.size()));
      ::close(client);
    });
  }
  ~FakeRas() {
    thread_.join();
    ::close(socket_);
  }
  HttpAddress address() const { return {"127.0.0.1", port_}; }

 private:
  int socket_ = -1, port_ = 0;
  std::string question_;
  std::thread thread_;
};

TEST(RasClient, BringsTheWholeAnswer) {
  const std::string text(MappedFile::Open(TACET_SOURCE_DIR "/src/evidence/ras/samples/dead_2.27.txt")->bytes());
  const FakeRas ras("OK\n" + text, false);
  const auto answer = AskRas(ras.address(), 60000);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer.value(), "OK\n" + text);
  EXPECT_EQ(ReadFragment("ras.txt", answer.value(), {}).format, "ras");
}

TEST(RasClient, GivesUpOnSilence) {
  const FakeRas ras("", true);
  const auto answer = AskRas(ras.address(), 200);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("in time"), std::string::npos);
}

TEST(RasClient, SaysThatNobodyIsThere) {
  const auto answer = AskRas({"127.0.0.1", 1}, 5000);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("nothing listens"), std::string::npos);
}

}  // namespace
}  // namespace tacet
