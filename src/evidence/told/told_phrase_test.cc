// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_phrase.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/load.h"
#include "evidence/meaning/event_meaning.h"

namespace tacet {
namespace {

Fragment Told(std::string_view line, bool outside = true, bool titled = false) {
  Fragment fragment;
  AddToldPhrase(line, titled, outside, {}, fragment);
  return fragment;
}

TEST(ToldPhrase, AnErrorIsKnownByItsWordsInAnyShape) {
  for (const char* line :
       {"` Test CUDA failure common.cu:1045 'CUDA driver version is insufficient for CUDA runtime version'`",
        "CUDA driver version is insufficient for CUDA runtime version",
        "\xE8\xAF\xA6\xE7\xBB\x86\xEF\xBC\x9A"
        "CUDA driver version is insufficient for CUDA runtime version"}) {
    const Fragment fragment = Told(line);
    ASSERT_EQ(fragment.events.size(), 1u) << line;
    EXPECT_EQ(fragment.events[0].As<Raised>().refusal, "old-driver") << line;
  }
  for (const char* line : {"If it says CUDA driver version is insufficient for CUDA runtime version, update the driver",
                           "We fixed it, CUDA driver version is insufficient for CUDA runtime version was the message",
                           "[INFO] no warning that CUDA driver version is insufficient for CUDA runtime version"})
    EXPECT_TRUE(Told(line).events.empty()) << line;
}

TEST(ToldPhrase, AWarningOfNcclMeansWhatAnExceptionMeans) {
  Event event;
  event.kind = EventKind::nccl_warning;
  event.text = "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'";
  event.Make<Warning>().id = "cuda-failure";
  ReadMeaning(event);
  EXPECT_EQ(event.kind, EventKind::exception);
  EXPECT_EQ(event.As<Raised>().refusal, "old-driver");
  Event other;
  other.kind = EventKind::nccl_warning;
  other.text = "Cuda failure 'invalid argument'";
  other.Make<Warning>().id = "cuda-failure";
  ReadMeaning(other);
  EXPECT_EQ(other.kind, EventKind::nccl_warning);
}

TEST(ToldPhrase, AConnectionErrorInASentence) {
  for (const char* line : {"the worker encounters a \"Connection reset by peer\" error as soon as it connects",
                           "torchrun throws DistNetworkError (Connection reset by peer)",
                           "NCCL Network is unreachable / Connection refused when initializing"}) {
    const Fragment fragment = Told(line, false, true);
    ASSERT_EQ(fragment.events.size(), 1u) << line;
    EXPECT_EQ(fragment.events[0].kind, EventKind::connect_failed) << line;
    EXPECT_TRUE(fragment.events[0].Means(Meaning::in_prose)) << line;
  }
  const Fragment later =
      Told("one worker gets \"Connection reset by peer\" in all_reduce after 40 minutes", false, true);
  ASSERT_EQ(later.events.size(), 1u);
  EXPECT_EQ(later.events[0].kind, EventKind::connection_lost) << "who works has passed the setup";
  for (const char* line :
       {"Does your job get connection refused as well?",
        "The connection reset by peer error is fixed with the new port",
        "There is no connection refused error any more, all of it runs",
        "This page tells what connection refused is about",
        "called `Result::unwrap()` on an `Err` value: Os { code: 111, message: \"Connection refused\" }"})
    EXPECT_TRUE(Told(line).events.empty()) << line;
  EXPECT_TRUE(Told("the worker gets a \"Connection refused\" error at once", false).events.empty());
}

Fragment Awaited(const std::string& text, bool hangs = true) {
  Fragment fragment;
  if (hangs) fragment.events.emplace_back().kind = EventKind::told_hang;
  AddAwaitedAddress(text, fragment);
  return fragment;
}

TEST(AwaitedAddress, AnyProgramMayWaitForAPeer) {
  for (const char* line : {"I 7449 mesh.cc:208] Waiting to connect to the mesh master (300 seconds) 192.0.2.15:8477",
                           "[hub] still trying to connect to tcp://192.0.2.15:8477 ...",
                           "worker 3 waits for a connection from 192.0.2.15:8477, retry 4"}) {
    const Fragment fragment = Awaited(std::string(line) + "\n");
    ASSERT_EQ(fragment.events.size(), 2u) << line;
    EXPECT_EQ(fragment.events[1].kind, EventKind::connect_failed);
    EXPECT_EQ(fragment.events[1].As<ConnectFailure>().address, "192.0.2.15:8477") << line;
  }
}

TEST(AwaitedAddress, WhoConnectedOrNamesNoAddressDoesNotWait) {
  const std::string waits = "[hub] trying to connect to 192.0.2.15:8477\n";
  EXPECT_EQ(Awaited(waits + "[hub] connected to 192.0.2.15:8477\n").events.size(), 1u);
  EXPECT_EQ(Awaited("[hub] trying to connect to the database\n").events.size(), 1u);
  EXPECT_EQ(Awaited("[hub] listens on 192.0.2.15:8477\n").events.size(), 1u);
  EXPECT_TRUE(Awaited(waits, false).events.empty()) << "once, and nobody says that it hangs";
  EXPECT_TRUE(Awaited(waits + waits + waits + "step 1\n", false).events.empty()) << "it went on";
  EXPECT_EQ(Awaited(waits + waits + waits, false).events.size(), 1u);
}

}  // namespace
}  // namespace tacet
