// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/event_meaning.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

#include "model/events/event_payload.h"

namespace tacet {
namespace {

Event Read(EventKind kind, EventDetail detail, std::string text) {
  Event event;
  event.kind = kind;
  event.detail = std::move(detail);
  event.text = std::move(text);
  ReadMeaning(event);
  return event;
}

Event ReadRaised(std::string type, std::string text = "") {
  return Read(EventKind::exception, Raised{std::move(type), {}, {}, {}, {}, {}}, std::move(text));
}

Event ReadCudaError(std::string words) { return Read(EventKind::cuda_error, CudaError{std::move(words), ""}, ""); }

Event ReadOomKill(std::string process) { return Read(EventKind::oom_kill, OomKill{std::move(process)}, ""); }

TEST(EventMeaning, AnErrorOfTheNetworkWithWordsOfTheProgramIsItsOwn) {
  EXPECT_TRUE(ReadRaised("ConnectionResetError", "[Errno 104] Connection reset by peer").Means(Meaning::consequence));
  EXPECT_TRUE(ReadRaised("BrokenPipeError").Means(Meaning::consequence));
  EXPECT_FALSE(ReadRaised("ConnectionResetError", "the tokenizer server hung up").Means(Meaning::consequence));
}

TEST(EventMeaning, AnEngineThatWaitedForItsWorkersOnlyWaited) {
  EXPECT_TRUE(ReadRaised("TimeoutError", "RPC call to execute_model timed out.").Means(Meaning::consequence));
  EXPECT_FALSE(ReadRaised("TimeoutError", "the tokenizer server did not answer").Means(Meaning::consequence));
}

TEST(EventMeaning, AStopForALossThatIsNotFiniteIsTold) {
  EXPECT_TRUE(ReadRaised("a loss that is not finite", "Loss is nan, stopping training").Means(Meaning::diverged));
  EXPECT_TRUE(ReadRaised("FloatingPointError", "Minimum loss scale reached (0.0001).").Means(Meaning::diverged));
  EXPECT_FALSE(ReadRaised("FloatingPointError", "divide by zero encountered in log").Means(Meaning::diverged));
  EXPECT_FALSE(ReadRaised("FloatingPointError", "Fatal error: gradients are inconsistent between workers")
                   .Means(Meaning::diverged));
}

TEST(EventMeaning, ALostPeerIsAConsequenceAndAWrongCallIsNot) {
  EXPECT_TRUE(ReadRaised("RuntimeError", "Connection reset by peer").Means(Meaning::consequence));
  EXPECT_TRUE(ReadRaised("torch.distributed.DistBackendError", "x").Means(Meaning::consequence));
  EXPECT_FALSE(ReadRaised("torch.distributed.DistBackendError",
                          "NCCL error in: a.cpp:1, invalid usage (run with NCCL_DEBUG=WARN for details)")
                   .Means(Meaning::consequence));
  EXPECT_FALSE(ReadRaised("ValueError", "bad sample").Means(Meaning::consequence));
  EXPECT_TRUE(
      ReadRaised("RuntimeError", "OPS function error: HcclAllreduce, error code is 6").Means(Meaning::consequence));
}

TEST(EventMeaning, MemoryOfTheHostIsNotThatOfTheGpu) {
  EXPECT_TRUE(ReadRaised("MemoryError").Means(Meaning::host_memory));
  EXPECT_FALSE(ReadRaised("torch.OutOfMemoryError").Means(Meaning::host_memory));
  EXPECT_TRUE(ReadCudaError("out of memory").Means(Meaning::gpu_memory));
}

LoaderWorkerEnd WorkerOf(const Event& event) { return std::get<LoaderWorkerEnd>(event.As<Raised>().about); }

TEST(EventMeaning, ALoaderWorkerIsAChildOfTheRank) {
  const auto read = [](std::string text) { return ReadRaised("RuntimeError", std::move(text)); };
  const Event killed = read("DataLoader worker (pid 4161) is killed by signal: Killed. ");
  EXPECT_TRUE(killed.Means(Meaning::loader_worker));
  EXPECT_FALSE(killed.Means(Meaning::host_memory)) << "anybody may have killed it";
  EXPECT_FALSE(killed.Means(Meaning::consequence));
  EXPECT_EQ(WorkerOf(killed).pids, "4161");
  EXPECT_EQ(WorkerOf(killed).signal, 9);
  const Event crashed = read("DataLoader worker (pid 8) is killed by signal: Segmentation fault. ");
  EXPECT_EQ(WorkerOf(crashed).signal, 11);
  EXPECT_TRUE(read("DataLoader worker (pid 8) is killed by signal: Terminated. ").Means(Meaning::consequence));
  EXPECT_EQ(WorkerOf(read("DataLoader worker (pid(s) 7, 8) exited unexpectedly")).pids, "7, 8");
  EXPECT_FALSE(read("DataLoader timed out after 5 seconds").Means(Meaning::loader_worker));
}

TEST(EventMeaning, AnErrorOfSetUpIsNoFaultOfTheGpu) {
  for (const char* words :
       {"no CUDA-capable device is detected", "CUDA driver version is insufficient for CUDA runtime version",
        "invalid device ordinal", "no kernel image is available for execution on the device", "initialization error",
        "hipErrorNoDevice", "CUBLAS_STATUS_NOT_INITIALIZED"}) {
    const Event event = ReadCudaError(words);
    EXPECT_EQ(event.kind, EventKind::exception) << words;
    EXPECT_TRUE(event.Means(Meaning::reported)) << words;
    EXPECT_EQ(event.text, words);
  }
  for (const char* words : {"uncorrectable ECC error encountered", "an illegal memory access was encountered"})
    EXPECT_EQ(ReadCudaError(words).kind, EventKind::cuda_error) << words;
}

TEST(EventMeaning, OnlyALauncherThatNamesItTellsOfPython) {
  EXPECT_TRUE(Read(EventKind::process_exited, ProcessEnd{}, "of binary: /usr/bin/python3").Means(Meaning::by_python));
  EXPECT_FALSE(
      Read(EventKind::process_exited, ProcessEnd{}, "task 3: Exited with exit code 1").Means(Meaning::by_python));
}

TEST(EventMeaning, AnErrorThatSpreadsIsKnownEvenWhereTheFileEndsInIt) {
  EXPECT_TRUE(ReadCudaError("an illegal memory").Means(Meaning::spreads));
  EXPECT_TRUE(ReadCudaError("an illegal memory access was encountered").Means(Meaning::illegal_access));
  EXPECT_FALSE(ReadCudaError("uncorrectable ECC error encountered").Means(Meaning::spreads));
}

TEST(EventMeaning, NcclsReasonIsTakenOutOfItsError) {
  const Event event = Read(EventKind::nccl_error, NcclError{5, "ncclInvalidUsage", ""},
                           "invalid usage\nLast error: Duplicate GPU detected");
  EXPECT_EQ(event.As<NcclError>().reason, "Duplicate GPU detected");
  EXPECT_TRUE(event.Means(Meaning::duplicate_gpu));
}

TEST(EventMeaning, AnErrorThatBecomesAnExceptionHoldsItsPayload) {
  const Event asserted = Read(EventKind::cuda_error, CudaError{"device-side assert triggered", "a.cu:3: x < 4"}, "");
  EXPECT_TRUE(HoldsItsPayload(asserted));
  EXPECT_EQ(std::get<DeviceAssertion>(asserted.As<Raised>().about).words, "a.cu:3: x < 4");
  const Event refused = ReadCudaError("initialization error");
  EXPECT_TRUE(HoldsItsPayload(refused));
  EXPECT_EQ(refused.As<Raised>().type, "a CUDA error");
  EXPECT_EQ(refused.text, "initialization error");
}

TEST(EventMeaning, AWorkerOfADataLoaderIsKnownByItsName) {
  EXPECT_TRUE(ReadOomKill("pt_data_worker").Means(Meaning::loader_worker));
  EXPECT_FALSE(ReadOomKill("pt_main_thread").Means(Meaning::loader_worker));
}

TEST(EventMeaning, ServicesOfAHostAreNoRanks) {
  EXPECT_TRUE(ReadOomKill("mysqld").Means(Meaning::of_service));
  EXPECT_FALSE(ReadOomKill("python3").Means(Meaning::of_service));
}

TEST(EventMeaning, WhoWaitedForOthersUntilItsTimeWasUpIsNotTheCause) {
  for (const char* text :
       {"NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is 507048",
        "[Rank 7] HCCL watchdog thread terminated with exception:",
        "EI0002: The wait execution of the Notify register times out. ... from remote rank: [3]. tag[AllReduce_g]",
        "allreduce timed out after 30 s"})
    EXPECT_TRUE(ReadRaised("RuntimeError", text).Means(Meaning::consequence)) << text;
  for (const char* text : {"shard server timed out after 30 s", "all_reduce got a tensor of the wrong type"}) {
    EXPECT_FALSE(ReadRaised("RuntimeError", text).Means(Meaning::consequence)) << text;
    EXPECT_TRUE(ReadRaised("RuntimeError", text).Means(Meaning::of_communication)) << text;
  }
  EXPECT_FALSE(ReadRaised("KeyError", "'labels'").Means(Meaning::of_communication));
}

TEST(EventMeaning, WhoseGpuItIsIsReadFromTheWords) {
  const auto of = [](std::string text) {
    return Read(EventKind::cuda_error, CudaError{"an illegal memory access was encountered", ""}, std::move(text))
        .maker;
  };
  EXPECT_EQ(of("RuntimeError: HIP error: an illegal memory access was encountered"), GpuMaker::amd);
  EXPECT_EQ(of("HW Exception by GPU node-9 (Agent handle: 0x55d2a0) reason :GPU Hang"), GpuMaker::amd);
  EXPECT_EQ(of("torch.OutOfMemoryError: XPU out of memory."), GpuMaker::intel);
  EXPECT_EQ(of("RuntimeError: CUDA error: an illegal memory access was encountered"), GpuMaker::not_told);
  EXPECT_EQ(Read(EventKind::nccl_version, Version{"2.18.3+hip5.7"}, "").maker, GpuMaker::amd);
}

TEST(EventMeaning, TheSystemsWordsForNoSpaceStandForItsNumber) {
  Warning warning;
  warning.id = "shm-extend-failed";
  EXPECT_EQ(Read(EventKind::nccl_warning, warning, "Call to posix_fallocate failed : No space left on device")
                .As<Warning>()
                .number,
            28);
  EXPECT_EQ(Read(EventKind::nccl_warning, warning, "Error while creating shared memory segment").As<Warning>().number,
            -1);
}

TEST(EventMeaning, AProgramThatGaveUpWaitingTimedOut) {
  EXPECT_TRUE(ReadRaised("RuntimeError", "shard server timed out after 30 s").Means(Meaning::timed_out));
  EXPECT_FALSE(ReadRaised("RuntimeError", "all_reduce timed out").Means(Meaning::timed_out));
}

TEST(EventMeaning, GlooNamesTheInterfaceThatHasNoAddress) {
  const Event gloo = ReadRaised("RuntimeError",
                                "[enforce fail at gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find "
                                "address for: ens7");
  EXPECT_TRUE(gloo.Means(Meaning::no_interface));
  ASSERT_TRUE(std::holds_alternative<ErrorObject>(gloo.As<Raised>().about));
  EXPECT_EQ(std::get<ErrorObject>(gloo.As<Raised>().about).words, "ens7");
  const Event nccl = ReadRaised("RuntimeError", "Last error: Bootstrap : no socket interface found");
  EXPECT_TRUE(nccl.Means(Meaning::no_interface));
  EXPECT_FALSE(std::holds_alternative<ErrorObject>(nccl.As<Raised>().about));
}

TEST(EventMeaning, AToolThatAsksAGpuIsNoRank) {
  const auto seen_by = [](std::string process) {
    Xid xid;
    xid.number = 119;
    xid.process = std::move(process);
    return Read(EventKind::xid, std::move(xid), "Xid").Means(Meaning::of_service);
  };
  EXPECT_TRUE(seen_by("nvidia-smi"));
  EXPECT_TRUE(seen_by("dcgm-exporter"));
  EXPECT_FALSE(seen_by("python3"));
  EXPECT_FALSE(seen_by("all_reduce_perf"));
  EXPECT_FALSE(seen_by(""));
}

}  // namespace
}  // namespace tacet
