// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_ascend.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

constexpr std::string_view kWait =
    "RuntimeError: npuSynchronizeDevice:a.cpp:4 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is "
    "507048\n";

std::string Notify(std::string_view remote) {
  return "EI0002: [PID: 77] 2025-06-25-10:45:23.586.187 The wait execution of the Notify register times out. Reason: "
         "The "
         "Notify register has not received the Notify record from remote rank: [" +
         std::string(remote) + "]. tag[AllReduce_g]\n";
}

TEST(Ascend, AWaitThatTimesOutIsNoErrorOfTheOneWhoWaits) {
  const Fragment fragment = ReadText(
      std::string(kWait) +
          "[ERROR] 2025-06-25-10:45:23 (PID:77, Device:0, RankID:8) ERR00100 PTA call acl api failed\n" + Notify("3"),
      "out.txt");
  EXPECT_TRUE(EventsOf(fragment, EventKind::exception).empty());
  const Event wait = OneEvent(fragment, EventKind::watchdog_timeout);
  EXPECT_EQ(wait.rank, Rank{8});
  EXPECT_EQ(wait.peer, Rank{3});
  EXPECT_EQ(wait.op, OpKind::all_reduce);
  EXPECT_EQ(wait.pid, 77);
}

TEST(Ascend, NumbersThatStandForNobodyAreNoRanks) {
  for (const char* nobody : {"unknown", "4294967295", "-1"})
    EXPECT_FALSE(OneEvent(ReadText(Notify(nobody), "out.txt"), EventKind::watchdog_timeout).peer.known()) << nobody;
  const Fragment fragment = ReadText(
      std::string(kWait) + "[ERROR] 2025-06-25-10:45:23 (PID:77, Device:0, RankID:4294967295) ERR00100 x\n", "out.txt");
  EXPECT_FALSE(OneEvent(fragment, EventKind::watchdog_timeout).rank.known());
}

TEST(Ascend, ACoreThatFailsIsOfTheDeviceThatTheNextLineNames) {
  const Fragment fragment = ReadText(
      "[ERROR] 2025-12-12-12:10:10 (PID:402, Device:7, RankID:-1) ERR02005 DIST internal error\n"
      "Find exception, query:a.ts:59 NPU function error: acl::AclQueryEventRecordedStatus(e), error code is 507014\n"
      "[ERROR] 2025-12-12-12:10:10 (PID:285, Device:4, RankID:-1) ERR00100 PTA call acl api failed\n"
      "[Error]: The aicore execution times out.\n",
      "out.txt");
  const Event error = OneEvent(fragment, EventKind::cuda_error);
  EXPECT_EQ(error.As<CudaError>().words, "an aicore timeout on device 4");
  EXPECT_EQ(error.pid, 285);
}

TEST(Ascend, AnOwnerFarBelowIsOfSomethingElse) {
  const Fragment fragment = ReadText(std::string(kWait) + std::string("a\nb\nc\nd\n") +
                                         "[ERROR] 2025-12-12-12:10:10 (PID:402, Device:7, RankID:7) ERR02005 x\n",
                                     "out.txt");
  EXPECT_FALSE(OneEvent(fragment, EventKind::watchdog_timeout).rank.known());
}

TEST(Ascend, ACallThatFailsIsToldByItsReason) {
  const Fragment fragment = ReadText(
      "[rank1]: RuntimeError: InnerRunOpApi:a.cpp:281 OPS function error: HcclAllreduce, error code is 6\n"
      "[rank1]: EI0006: [PID: 12] 2025-04-08-18:07:20.444.436 Getting socket times out. Reason: Remote Rank did not "
      "send "
      "the data in time.\n",
      "out.txt");
  EXPECT_EQ(OneEvent(fragment, EventKind::nccl_error).As<NcclError>().reason,
            "EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time.");
}

TEST(Ascend, AWaitThatTheJobSurvivedIsDropped) {
  std::string steps;
  for (int step = 11; step < 20; ++step) steps += "step " + std::to_string(step) + " loss 3\n";
  const std::string before = "step 9 loss 3\nstep 10 loss 3\n";
  EXPECT_TRUE(EventsOf(ReadText(before + Notify("3") + steps, "a"), EventKind::watchdog_timeout).empty());
  EXPECT_EQ(EventsOf(ReadText(before + Notify("3"), "a"), EventKind::watchdog_timeout).size(), 1u);
  EXPECT_TRUE(ReadText("If EI0002 is reported, raise HCCL_EXEC_TIMEOUT.\n", "a").events.empty());
}

TEST(Ascend, OtherCodesStayErrorsOfTheProgram) {
  const Fragment fragment =
      ReadText("RuntimeError: call:a.cpp:1 NPU function error: aclnnAdd, error code is 561002\n", "out.txt");
  EXPECT_EQ(EventsOf(fragment, EventKind::exception).size(), 1u);
  EXPECT_TRUE(EventsOf(fragment, EventKind::watchdog_timeout).empty());
}

// HCCL's rank 0 lists who connected, eight in a line.
std::string Connected(const std::string& counts, const std::string& needed, const std::string& list) {
  const std::string head =
      "[ERROR] HCCL(4711,python3):2026-04-02-07:31:44.120.251 [topoinfo_exchange_server.cc:517] [4790]";
  return head + "[InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[120 s]\n" + head +
         "[InitGroupStage][DisplayConnectionedRank]total connected num is [" + counts + "],line num is [1]\n" + head +
         "[InitGroupStage][DisplayConnectionedRank]need connect rankNum is [" + needed + "]\n" + head +
         "[InitGroupStage][DisplayConnectionedRank]connected rankinfo[LINE 0]: " + list + ";\n";
}

TEST(TorchLogAscend, RankZeroTellsWhoDidNotConnect) {
  const std::string list = "[0000000000000000],[0000000000000001],[0000000000000003]";
  const Event event = OneEvent(ReadText(Connected("3", "4", list), "o"), EventKind::rendezvous_incomplete);
  EXPECT_EQ(event.As<Rendezvous>().joined, 3);
  EXPECT_EQ(event.As<Rendezvous>().expected, 4);
  EXPECT_EQ(event.ranks, std::vector<Rank>{Rank{2}});
  // Not all who connected are listed: nobody is named.
  EXPECT_TRUE(OneEvent(ReadText(Connected("12", "16", list), "o"), EventKind::rendezvous_incomplete).ranks.empty());
  const Event counted =
      OneEvent(ReadText("EI0015: [PID: 31220] 2025-05-20-20:05:20.520.111 In the topo detect stage of the communicator "
                        "initialization, the server times out waiting for ranks to connect. 7 of 8 ranks connected.\n",
                        "o"),
               EventKind::rendezvous_incomplete);
  EXPECT_EQ(counted.As<Rendezvous>().joined, 7);
  const Event told = OneEvent(
      ReadText("[ERROR] HCCL(4715,python3):2026-04-02-07:31:44.130.122 [topoinfo_exchange_base.cc:145] [4715]"
               "[InitGroupStage][RanktableDetect] TopoDetect ERROR occur !!! fault_type[1], fault_info[\"Failed to "
               "connect agent[1,3,]\"]\n",
               "o"),
      EventKind::rendezvous_incomplete);
  EXPECT_EQ(told.ranks, (std::vector<Rank>{Rank{1}, Rank{3}}));
  EXPECT_TRUE(EventsOf(ReadText("HCCL: 8 of 8 ranks connected\n", "o"), EventKind::rendezvous_incomplete).empty());
}

}  // namespace
}  // namespace tacet
