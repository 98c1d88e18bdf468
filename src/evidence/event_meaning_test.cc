// SPDX-License-Identifier: Apache-2.0
#include "evidence/event_meaning.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace tacet {
namespace {

Event Read(EventKind kind, std::string subject, std::string text = "") {
  Event event;
  event.kind = kind;
  event.subject = std::move(subject);
  event.text = std::move(text);
  ReadMeaning(event);
  return event;
}

TEST(EventMeaning, ALostPeerIsAConsequenceAndAWrongCallIsNot) {
  EXPECT_TRUE(Read(EventKind::exception, "RuntimeError", "Connection reset by peer").Means(Meaning::consequence));
  EXPECT_TRUE(Read(EventKind::exception, "torch.distributed.DistBackendError", "x").Means(Meaning::consequence));
  EXPECT_FALSE(Read(EventKind::exception, "torch.distributed.DistBackendError",
                    "NCCL error in: a.cpp:1, invalid usage (run with NCCL_DEBUG=WARN for details)")
                   .Means(Meaning::consequence));
  EXPECT_FALSE(Read(EventKind::exception, "ValueError", "bad sample").Means(Meaning::consequence));
  EXPECT_TRUE(Read(EventKind::exception, "RuntimeError", "OPS function error: HcclAllreduce, error code is 6")
                  .Means(Meaning::consequence));
}

TEST(EventMeaning, MemoryOfTheHostIsNotThatOfTheGpu) {
  EXPECT_TRUE(Read(EventKind::exception, "MemoryError").Means(Meaning::host_memory));
  EXPECT_FALSE(Read(EventKind::exception, "torch.OutOfMemoryError").Means(Meaning::host_memory));
  EXPECT_TRUE(Read(EventKind::cuda_error, "out of memory").Means(Meaning::gpu_memory));
}

TEST(EventMeaning, ALoaderWorkerIsAChildOfTheRank) {
  const auto read = [](std::string text) { return Read(EventKind::exception, "RuntimeError", std::move(text)); };
  const Event killed = read("DataLoader worker (pid 4161) is killed by signal: Killed. ");
  EXPECT_TRUE(killed.Means(Meaning::loader_worker));
  EXPECT_FALSE(killed.Means(Meaning::host_memory)) << "anybody may have killed it";
  EXPECT_FALSE(killed.Means(Meaning::consequence));
  EXPECT_EQ(killed.object, "4161");
  EXPECT_EQ(killed.value, -9);
  const Event crashed = read("DataLoader worker (pid 8) is killed by signal: Segmentation fault. ");
  EXPECT_EQ(crashed.value, -11);
  EXPECT_TRUE(read("DataLoader worker (pid 8) is killed by signal: Terminated. ").Means(Meaning::consequence));
  EXPECT_EQ(read("DataLoader worker (pid(s) 7, 8) exited unexpectedly").object, "7, 8");
  EXPECT_FALSE(read("DataLoader timed out after 5 seconds").Means(Meaning::loader_worker));
}

TEST(EventMeaning, AnErrorOfSetUpIsNoFaultOfTheGpu) {
  for (const char* words :
       {"no CUDA-capable device is detected", "CUDA driver version is insufficient for CUDA runtime version",
        "invalid device ordinal", "no kernel image is available for execution on the device", "initialization error",
        "hipErrorNoDevice", "CUBLAS_STATUS_NOT_INITIALIZED"}) {
    const Event event = Read(EventKind::cuda_error, words);
    EXPECT_EQ(event.kind, EventKind::exception) << words;
    EXPECT_TRUE(event.Means(Meaning::reported)) << words;
    EXPECT_EQ(event.text, words);
  }
  for (const char* words : {"uncorrectable ECC error encountered", "an illegal memory access was encountered"})
    EXPECT_EQ(Read(EventKind::cuda_error, words).kind, EventKind::cuda_error) << words;
}

TEST(EventMeaning, OnlyALauncherThatNamesItTellsOfPython) {
  EXPECT_TRUE(Read(EventKind::process_exited, "", "of binary: /usr/bin/python3").Means(Meaning::by_python));
  EXPECT_FALSE(Read(EventKind::process_exited, "", "task 3: Exited with exit code 1").Means(Meaning::by_python));
}

TEST(EventMeaning, AnErrorThatSpreadsIsKnownEvenWhereTheFileEndsInIt) {
  EXPECT_TRUE(Read(EventKind::cuda_error, "an illegal memory").Means(Meaning::spreads));
  EXPECT_TRUE(Read(EventKind::cuda_error, "an illegal memory access was encountered").Means(Meaning::illegal_access));
  EXPECT_FALSE(Read(EventKind::cuda_error, "uncorrectable ECC error encountered").Means(Meaning::spreads));
}

TEST(EventMeaning, NcclsReasonIsTakenOutOfItsError) {
  const Event event =
      Read(EventKind::nccl_error, "ncclInvalidUsage", "invalid usage\nLast error: Duplicate GPU detected");
  EXPECT_EQ(event.object, "Duplicate GPU detected");
  EXPECT_TRUE(event.Means(Meaning::duplicate_gpu));
}

TEST(EventMeaning, ServicesOfAHostAreNoRanks) {
  EXPECT_TRUE(Read(EventKind::oom_kill, "mysqld").Means(Meaning::of_service));
  EXPECT_FALSE(Read(EventKind::oom_kill, "python3").Means(Meaning::of_service));
}

}  // namespace
}  // namespace tacet
