// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_parse.h"

#include <gtest/gtest.h>

#include "evidence/nccl_log/nccl_log_communicators.h"
#include "evidence/nccl_log/nccl_log_stamp.h"
#include "evidence/nccl_log/nccl_log_topic.h"
#include "evidence/nccl_log/nccl_log_topology.h"

namespace tacet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNovember15 = 1'794'700'800 * kSecond;  // 2026-11-15 00:00:00

int64_t StampOf(std::string_view lead) { return ParseStamp(lead).wall_ns; }

TEST(NcclLogStamp, ReadsTheDefaultFormat) {
  EXPECT_EQ(StampOf("[2026-11-15 00:15:37] "), kNovember15 + (15 * 60 + 37) * kSecond);
}

TEST(NcclLogStamp, ReadsSubseconds) {
  EXPECT_EQ(StampOf("[2026-11-15 00:15:37.123] "), kNovember15 + 937 * kSecond + 123'000'000);
  EXPECT_EQ(StampOf("[2026-11-15 00:15:37.123456789] "), kNovember15 + 937 * kSecond + 123'456'789);
  EXPECT_EQ(StampOf("2026-11-15T00:15:37,5 "), kNovember15 + 937 * kSecond + 500'000'000);
}

TEST(NcclLogStamp, ReadsOtherFormatsThatHaveADate) {
  EXPECT_EQ(StampOf("2026/11/15 00:15:37 "), kNovember15 + 937 * kSecond);
  EXPECT_EQ(StampOf("20261115 00:15:37 "), kNovember15 + 937 * kSecond);
  EXPECT_EQ(StampOf("1794701737.250000 "), kNovember15 + 937 * kSecond + 250'000'000);
}

TEST(NcclLogStamp, AppliesAWrittenZone) {
  EXPECT_EQ(StampOf("[2026-11-15 01:15:37+01:00] "), kNovember15 + 937 * kSecond);
  EXPECT_EQ(StampOf("[2026-11-14 16:15:37-0800] "), kNovember15 + 937 * kSecond);
}

TEST(NcclLogStamp, TakesTheTimeNearestToTheHost) {
  EXPECT_EQ(StampOf("2026-11-15T00:00:01Z [2026-11-15 00:15:37] "), kNovember15 + 937 * kSecond);
}

TEST(NcclLogStamp, HasNoTimeWithoutADate) {
  EXPECT_EQ(StampOf("[00:15:37] "), kNoStamp);
  EXPECT_EQ(StampOf("3: "), kNoStamp);
  EXPECT_EQ(StampOf("[2026-13-45 00:15:37] "), kNoStamp);
  EXPECT_EQ(StampOf("[2026-11-15 25:15:37] "), kNoStamp);
  EXPECT_EQ(StampOf("9513095834 "), kNoStamp);
  EXPECT_EQ(StampOf(""), kNoStamp);
}

TEST(NcclLogStamp, ReadsTheNextTimeLikeAFreshOne) {
  const std::string_view first = "[2026-11-15 00:15:37.100] ";
  for (const std::string_view next :
       {"[2026-11-15 00:15:38.250] ", "[2026-11-15 00:16:00.000] ", "[2026-12-01 10:00:00.999] ",
        "[2026-11-15 00:15:99.100] ", "[garbage that is as long] "})
    EXPECT_EQ(ParseStampLike(next, first, ParseStamp(first)).wall_ns, StampOf(next)) << next;
}

TEST(NcclLogLabel, KnowsTheLaunchers) {
  using Kind = LauncherLabel::Kind;
  struct Case {
    std::string_view line;
    Kind kind;
    int32_t value;
    size_t length;
  };
  for (const Case& c :
       {Case{"3: node", Kind::task, 3, 3}, Case{" 12: node", Kind::task, 12, 5},
        Case{"[1,3]<stdout>:node", Kind::task, 3, 14}, Case{"[1,7]<stderr>: node", Kind::task, 7, 15},
        Case{"[3] node", Kind::task, 3, 4}, Case{"[rank3]:node", Kind::rank, 3, 8},
        Case{"[rank3]: node", Kind::rank, 3, 9}, Case{"[default5]:node", Kind::local, 5, 11},
        Case{"(pid=1234) node", Kind::other, -1, 11}, Case{"(Worker pid=1, ip=10.0.0.1) node", Kind::other, -1, 28},
        Case{"[pod/train-3/main] node", Kind::other, -1, 19}, Case{"\x1b[36m[rank2]: x", Kind::rank, 2, 14},
        Case{"[2026-11-15 00:15:37] vm:1:1", Kind::none, -1, 0}, Case{"vm:1:1 [0]", Kind::none, -1, 0},
        Case{"(hello) vm", Kind::none, -1, 0}, Case{"[rankx]: vm", Kind::none, -1, 0}, Case{"", Kind::none, -1, 0}}) {
    const LauncherLabel label = ParseLauncherLabel(c.line);
    EXPECT_EQ(label.kind, c.kind) << c.line;
    EXPECT_EQ(label.value, c.value) << c.line;
    EXPECT_EQ(label.length, c.length) << c.line;
  }
}

TEST(NcclLogCall, ReadsEveryField) {
  NcclCall call;
  ASSERT_TRUE(ParseCall(
      "AllReduce: opCount 1f sendbuff 0x7f7e1d800000 recvbuff 0x7f7e1d800000 count 262144 datatype 7 op 2 root 0 "
      "comm 0x28ebf670 [nranks=4] stream (nil)",
      &call));
  EXPECT_EQ(call.function, NcclFunction::all_reduce);
  EXPECT_EQ(call.op_count, 0x1fu);
  EXPECT_EQ(call.count, 262144);
  EXPECT_EQ(call.data_type, 7);
  EXPECT_EQ(call.reduction, 2);
  EXPECT_EQ(call.root, 0);
  EXPECT_EQ(call.comm, 0x28ebf670u);
  EXPECT_EQ(call.nranks, 4);
}

TEST(NcclLogCall, ReadsEmptyAndShortAddresses) {
  NcclCall call;
  ASSERT_TRUE(
      ParseCall("Recv: opCount 2 sendbuff (nil) recvbuff 0x7f4d00 count 9 datatype 9 op 0 root 1 comm 0x1c73b720 "
                "[nranks=4] stream 0x1",
                &call));
  EXPECT_EQ(call.function, NcclFunction::recv);
  EXPECT_EQ(call.root, 1);
  EXPECT_EQ(call.comm, 0x1c73b720u);
}

TEST(NcclLogCall, ReadsTheFormsThatDocumentsShow) {
  NcclCall call;
  ASSERT_TRUE(ParseCall(
      "AllReduce: opCount 1e size 4194304 datatype 7 op 0 root 0 comm 0x7f8a4c000b80 [nranks=8] stream 0x7f", &call));
  EXPECT_EQ(call.bytes, 4194304);
  EXPECT_EQ(call.count, -1);
  EXPECT_EQ(call.nranks, 8);
  EXPECT_EQ(call.comm, 0x7f8a4c000b80u);
  ASSERT_TRUE(ParseCall("AllReduce: opCount 42 bytes 104857600 datatype 7 op 0", &call));
  EXPECT_EQ(call.bytes, 104857600);
  EXPECT_EQ(call.comm, 0u);
  ASSERT_TRUE(ParseCall("AllReduce: opCount 1e DONE", &call));
  EXPECT_EQ(call.op_count, 0x1eu);
}

TEST(NcclLogCall, RefusesEveryCutOfAFullLine) {
  const std::string_view line =
      "AllReduce: opCount 1f sendbuff 0x7f7e1d800000 recvbuff 0x7f7e1d800000 count 262144 datatype 7 op 0 root 0 comm "
      "0x28ebf670 [nranks=4]";
  NcclCall call;
  ASSERT_TRUE(ParseCall(line, &call));
  for (size_t length = 0; length < line.size(); ++length)
    EXPECT_FALSE(ParseCall(line.substr(0, length), &call)) << length;
}

TEST(NcclLogCall, ReadsALineTheSameWhateverCameBefore) {
  const auto line = [](int type, int op, std::string_view comm) {
    return "AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x1 count 8 datatype " + std::to_string(type) + " op " +
           std::to_string(op) + " root 0 comm " + std::string(comm) + " [nranks=4] stream 0x1";
  };
  const std::string lines[] = {line(7, 0, "0xa1"), line(7, 0, "0xa1"), line(7, 0, "0xa12"), line(7, 1, "0xa1"),
                               line(9, 0, "0xa1")};
  NcclCallReader reader;
  uint32_t writer = 0;
  for (const std::string& text : lines) {
    NcclCall remembered, fresh;
    ASSERT_TRUE(reader.Parse(text, writer++ % 2 * 17, &remembered));
    ASSERT_TRUE(ParseCall(text, &fresh));
    EXPECT_EQ(remembered.comm, fresh.comm) << text;
    EXPECT_EQ(remembered.data_type, fresh.data_type) << text;
    EXPECT_EQ(remembered.reduction, fresh.reduction) << text;
    EXPECT_EQ(remembered.nranks, fresh.nranks) << text;
  }
}

TEST(NcclLogCall, RefusesNumbersThatDoNotFit) {
  NcclCall call;
  EXPECT_FALSE(
      ParseCall("AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 99999999999999999999 datatype 7 op 0 root 0 comm "
                "0x1 [nranks=4]",
                &call));
  EXPECT_FALSE(ParseCall(
      "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 9 datatype 99999999999 op 0 root 0 comm 0x1 [nranks=4]",
      &call));
  EXPECT_FALSE(ParseCall("AllReduce: opCount 00000000000000000 sendbuff 0x1", &call));
}

TEST(NcclLogCall, ReadsTheCallLevel) {
  NcclCall call;
  ASSERT_TRUE(ParseApiCall("ncclReduceScatter(7f2a00000000,7f2a00000000,512,9,4,0,0x55d0c0a0,0x7f10aa00)", &call));
  EXPECT_EQ(call.function, NcclFunction::reduce_scatter);
  EXPECT_EQ(call.count, 512);
  EXPECT_EQ(call.data_type, 9);
  EXPECT_EQ(call.reduction, 4);
  EXPECT_EQ(call.comm, 0x55d0c0a0u);
  EXPECT_FALSE(ParseApiCall("ncclReduceScatter(7f2a00000000,7f2a00000000,512,9,4,0,0x55d0", &call));
}

TEST(NcclLogInit, ReadsTheLineOfEveryRelease) {
  struct Case {
    std::string_view line;
    uint64_t comm_id;
    bool complete;
    std::string_view bus_id;
    int32_t child_count;
  };
  for (const Case& c : {
           Case{"comm 0xa1 rank 3 nranks 8 cudaDev 2 nvmlDev 3 - Init COMPLETE", 0, true, "", -1},
           Case{"comm 0xa1 rank 3 nranks 8 cudaDev 2 busId c8000 - Init COMPLETE", 0, true, "c8000", -1},
           Case{"comm 0xa1 rank 3 nranks 8 cudaDev 2 busId c8000 commId 0x74c2 - Init COMPLETE", 0x74c2, true, "c8000",
                -1},
           Case{"comm 0xa1 rank 3 nranks 8 cudaDev 2 nvmlDev 3 busId c8000 commId 0x74c2 - Init START", 0x74c2, false,
                "c8000", -1},
           Case{"ncclCommInitRankConfig comm 0xa1 rank 3 nranks 8 cudaDev 2 nvmlDev 0 busId 60 commId 0x74c2 - Init "
                "START",
                0x74c2, false, "60", -1},
           Case{"[Rank 3] ncclCommInitRank comm 0xa1 rank 3 nranks 8 cudaDev 2 nvmlDev 0 busId 60 commId 0x74c2 - Init "
                "START",
                0x74c2, false, "60", -1},
       }) {
    NcclInit init;
    EXPECT_EQ(ClassifyInfo(c.line), NcclTopic::init) << c.line;
    ASSERT_TRUE(ParseInit(c.line, &init)) << c.line;
    EXPECT_EQ(init.comm, 0xa1u);
    EXPECT_EQ(init.rank, 3);
    EXPECT_EQ(init.nranks, 8);
    EXPECT_EQ(init.device, 2);
    EXPECT_EQ(init.comm_id, c.comm_id) << c.line;
    EXPECT_EQ(init.complete, c.complete) << c.line;
    EXPECT_EQ(init.bus_id, c.bus_id) << c.line;
    EXPECT_FALSE(init.is_split);
  }
}

TEST(NcclLogInit, ReadsTheSplitOfEveryRelease) {
  struct Case {
    std::string_view line;
    uint64_t comm_id;
    int32_t child_count;
  };
  for (const Case& c : {Case{"ncclCommSplit comm 0xb2 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 60 parent 0xa1 color 7 "
                             "key 1 commId 0x99 - Init START",
                             0x99, -1},
                        Case{"ncclCommSplit comm 0xb2 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 60 parent 0xa1 color 7 "
                             "key 1- Init START",
                             0, -1},
                        Case{"ncclCommSplit comm 0xb2 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 60 parent 0xa1 "
                             "splitCount 2 color 7 key 1 - Init COMPLETE",
                             0, 2},
                        Case{"ncclCommShrink comm 0xb2 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 60 parent 0xa1 "
                             "childCount 3 color 7 key 1- Init START",
                             0, 3}}) {
    NcclInit init;
    ASSERT_TRUE(ParseInit(c.line, &init)) << c.line;
    EXPECT_TRUE(init.is_split);
    EXPECT_EQ(init.parent, 0xa1u);
    EXPECT_EQ(init.color, 7);
    EXPECT_EQ(init.child_count, c.child_count) << c.line;
    EXPECT_EQ(init.comm_id, c.comm_id) << c.line;
  }
}

TEST(NcclLogInit, RefusesImpossiblePlaces) {
  NcclInit init;
  EXPECT_FALSE(ParseInit("comm 0xa1 rank 8 nranks 8 cudaDev 2 nvmlDev 3 - Init COMPLETE", &init));
  EXPECT_FALSE(ParseInit("comm 0xa1 rank -1 nranks 8 cudaDev 2 nvmlDev 3 - Init COMPLETE", &init));
  EXPECT_FALSE(ParseInit("ncclCommInitRank rank 1 nranks 8 - Init START", &init));
}

TEST(NcclLogHash, EqualsTheHashesThatNcclPrinted) {
  // From a recording of 2.28.9 in which a profiler plugin printed them.
  EXPECT_EQ(HashOfSplit(28, 0x74c2aad0c83fa31, 1, 1), 13648531030292480976u);
  EXPECT_EQ(HashOfSplit(28, 0x74c2aad0c83fa31, 2, 2), 10013241168830111106u);
  EXPECT_EQ(HashOfSplit(-1, 0x74c2aad0c83fa31, 2, 2), 10013241168830111106u);
}

TEST(NcclLogHash, DiffersByReleaseCountAndColor) {
  EXPECT_NE(HashOfSplit(24, 5, 1, 1), HashOfSplit(26, 5, 1, 1));
  EXPECT_EQ(HashOfSplit(24, 5, 1, 1), HashOfSplit(25, 5, 1, 1));
  EXPECT_NE(HashOfSplit(24, 5, 1, 1), HashOfSplit(24, 5, 2, 1));
  EXPECT_NE(HashOfSplit(23, 5, -1, 1), HashOfSplit(23, 5, -1, 2));
}

TEST(NcclLogHash, KnowsTheRelease) {
  EXPECT_EQ(MinorRelease("2.28.9+cuda13.0"), 28);
  EXPECT_EQ(MinorRelease("3.1"), -1);
  EXPECT_EQ(MinorRelease(""), -1);
}

TEST(NcclLogCommEnd, TellsDestroyAbortAndRevoke) {
  NcclCommEnd end;
  ASSERT_TRUE(ParseCommEnd("comm 0xa1 rank 1 nranks 4 cudaDev 0 busId 60 - Destroy COMPLETE", &end));
  EXPECT_EQ(end.kind, NcclCommEnd::Kind::destroy);
  EXPECT_TRUE(end.complete);
  ASSERT_TRUE(ParseCommEnd("comm 0xa1 rank 1 nRanks 4 cudaDev 0 busId 60 - Abort START", &end));
  EXPECT_EQ(end.kind, NcclCommEnd::Kind::abort);
  EXPECT_FALSE(end.complete);
  ASSERT_TRUE(ParseCommEnd("comm 0xa1 rank 1 nRanks 4 cudaDev 0 busId 60 - Revoke COMPLETE, result 0", &end));
  EXPECT_EQ(end.kind, NcclCommEnd::Kind::revoke);
  EXPECT_FALSE(ParseCommEnd("comm 0xa1 rank 1 nRanks 4 cudaDev 0 busId 60 - Nap START", &end));
}

TEST(NcclLogEnvironment, DropsTheFullStopOfIntegersOnly) {
  NcclSetting setting;
  ASSERT_TRUE(ParseEnvironment("NCCL_MAX_NCHANNELS set by environment to 1.", &setting));
  EXPECT_EQ(setting.name, "NCCL_MAX_NCHANNELS");
  EXPECT_EQ(setting.value, "1");
  ASSERT_TRUE(ParseEnvironment("NCCL_TOPO_FILE set by environment to /etc/topo.", &setting));
  EXPECT_EQ(setting.value, "/etc/topo.");
  ASSERT_TRUE(ParseEnvironment("NCCL_IB_HCA set to mlx5_0,mlx5_1", &setting));
  EXPECT_EQ(setting.value, "mlx5_0,mlx5_1");
  EXPECT_FALSE(ParseEnvironment("NCCL_ALGO was set", &setting));
}

TEST(NcclLogConnection, ReadsTheFormsOfAllReleases) {
  using Direction = NcclConnection::Direction;
  struct Case {
    std::string_view line;
    int32_t from, to;
    Direction direction;
    std::string_view via;
  };
  for (const Case& c :
       {Case{"Channel 00/0 : 1[0] -> 2[0] [send] via NET/Socket/0/Shared", 1, 2, Direction::send,
             "NET/Socket/0/Shared"},
        Case{"Channel 03/1 : 10[c8000] -> 1[cb000] via P2P/IPC/read", 10, 1, Direction::both, "P2P/IPC/read"},
        Case{"Channel 02 : 3[1b000] -> 0[1c000] via direct shared memory", 3, 0, Direction::both,
             "direct shared memory"},
        Case{"Ring 00 : 0 -> 1 [send] via NET/IB/0/GDRDMA", 0, 1, Direction::send, "NET/IB/0/GDRDMA"},
        Case{"Ring 01 : 3[1] -> 0[0] via P2P/IPC", 3, 0, Direction::both, "P2P/IPC"},
        Case{"CollNet 00/1 : 3 [receive] via COLLNET/SHARP/0/GDRDMA", 3, -1, Direction::receive,
             "COLLNET/SHARP/0/GDRDMA"}}) {
    NcclConnection connection;
    EXPECT_EQ(ClassifyInfo(c.line), NcclTopic::connection) << c.line;
    ASSERT_TRUE(ParseConnection(c.line, &connection)) << c.line;
    EXPECT_EQ(connection.from, c.from) << c.line;
    EXPECT_EQ(connection.to, c.to) << c.line;
    EXPECT_EQ(connection.direction, c.direction) << c.line;
    EXPECT_EQ(connection.via, c.via) << c.line;
  }
}

TEST(NcclLogConnection, IsReadAlikeByHandAndByWords) {
  for (const std::string_view line :
       {"Channel 00/0 : 1[0] -> 2[0] [send] via NET/Socket/0/Shared",
        "Channel 03/1 : 0[c8000] -> 1[cb000] via P2P/IPC/read",
        "Channel 127/1 : 2047[7] -> 0[0] [receive] via NET/IB/7(2040)/GDRDMA/Shared",
        "Channel 01/0 : 3[c1000] -> 0[c8000] via P2P/direct pointer comm 0x55d0c0a0 nRanks 08 busId c1000"}) {
    NcclConnection quick, full;
    ASSERT_TRUE(ParseChannelConnection(line, &quick)) << line;
    ASSERT_TRUE(ParseConnection(line, &full)) << line;
    EXPECT_TRUE(IsSameWay(quick, full)) << line;
    EXPECT_EQ(quick.channel, full.channel) << line;
    EXPECT_EQ(quick.index, full.index) << line;
  }
  NcclConnection unused;
  for (const std::string_view line :
       {"Channel 00/02 : 0 1 2 3", "Channel 02 : 3[1b000] -> 0[1c000] via direct shared memory",
        "Channel 00/0 : 1[0] -> 2[0] [send] via ", "Channel 00/0 : 1[0 -> 2[0] via P2P", "Channel 00/0 : 1[0] -> 2[0]",
        "Channel 99999999999/0 : 1[0] -> 2[0] via P2P", "Channel ", ""})
    EXPECT_FALSE(ParseChannelConnection(line, &unused)) << line;
}

TEST(NcclLogConnection, TellsKindsApartButNotDevices) {
  EXPECT_EQ(HashViaClass("NET/IB/0/GDRDMA"), HashViaClass("NET/IB/7(3)/GDRDMA/Shared"));
  EXPECT_NE(HashViaClass("NET/IB/0/GDRDMA"), HashViaClass("NET/IB/0"));
  EXPECT_NE(HashViaClass("NET/IB/0"), HashViaClass("NET/Socket/0"));
  EXPECT_NE(HashViaClass("P2P/CUMEM"), HashViaClass("P2P/IPC"));
  EXPECT_NE(HashViaClass("SHM/direct/direct"), HashViaClass("SHM/CE/direct"));
}

TEST(NcclLogDevices, TakesInterfacesAndAdapters) {
  std::string_view list =
      "[0]eth0:10.0.0.1<0> [1]ib0:fe80::1%ib0<0> [2]mlx5_0:1/IB [3]={[0] mlx5_1:1/RoCE, [1] mlx5_2:1/RoCE} [RO]";
  NcclDevice device;
  ASSERT_TRUE(TakeDevice(list, &device));
  EXPECT_EQ(device.name, "eth0");
  EXPECT_EQ(device.address, "10.0.0.1");
  ASSERT_TRUE(TakeDevice(list, &device));
  EXPECT_EQ(device.name, "ib0");
  EXPECT_EQ(device.address, "fe80::1%ib0");
  for (const std::string_view name : {"mlx5_0:1/IB", "mlx5_1:1/RoCE", "mlx5_2:1/RoCE"}) {
    ASSERT_TRUE(TakeDevice(list, &device));
    EXPECT_EQ(device.name, name);
    EXPECT_EQ(device.address, "");
  }
  EXPECT_FALSE(TakeDevice(list, &device));
}

TEST(NcclLogPropagation, ReadsTheCodeBehindTheArrow) {
  EXPECT_EQ(ParsePropagation("misc/socket.cc:845 -> 6"), 6);
  EXPECT_EQ(ParsePropagation("proxy.cc:965 -> 2 [Progress Thread]"), 2);
  EXPECT_EQ(ParsePropagation("init.cc:2158 (ncclCommInitRankDev) -> 5"), 5);
  EXPECT_EQ(ParsePropagation("init.cc:2158 Cuda failure 'x'"), -1);
}

TEST(NcclLogTopic, ToldByTheFirstCharacters) {
  struct Case {
    std::string_view line;
    NcclTopic topic;
  };
  for (const Case& c :
       {Case{"AllReduce: opCount 0 sendbuff 0x1", NcclTopic::call},
        Case{"Send: opCount 0 sendbuff", NcclTopic::call},
        Case{"AllReduce: opCount 1e DONE", NcclTopic::call_done},
        Case{"AllReduce: 4198400 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}", NcclTopic::choice},
        Case{"4198400 Bytes -> Algo 1 proto 2 time 8.5", NcclTopic::choice},
        Case{"AllGather [Symmetric]: 4096 Bytes -> Kernel X", NcclTopic::choice},
        Case{"comm 0x1 rank 0 nRanks 4 nNodes 4 localRanks 1 localRank 0 MNNVL 0", NcclTopic::comm_shape},
        Case{"comm 0x1 rank 0 nranks 4 cudaDev 0 busId 60 - Destroy COMPLETE", NcclTopic::comm_end},
        Case{"PROFILER/Plugin: init commName:  commHash: 1 nranks: 4 rank: 1", NcclTopic::comm_hash},
        Case{"NCCL version 2.28.9+cuda13.0", NcclTopic::version},
        Case{"NCCL_ALGO set by environment to Ring", NcclTopic::environment},
        Case{"Using network AWS Libfabric", NcclTopic::network},
        Case{"Bootstrap: Using eth0:10.0.0.1<0>", NcclTopic::interfaces},
        Case{"Bootstrap : Using [0]eth0:10.0.0.1<0>", NcclTopic::interfaces},
        Case{"NET/Socket : Using [0]eth0:10.0.0.1<0>", NcclTopic::interfaces},
        Case{"NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", NcclTopic::devices},
        Case{"NET/IB : No device found.", NcclTopic::no_device},
        Case{"Ring 00 : 3 -> 0 -> 1", NcclTopic::topology},
        Case{"Trees [0] 1/-1/-1->0->-1", NcclTopic::topology},
        Case{"Channel 00/02 : 0 1 2 3", NcclTopic::topology},
        Case{"Connected all rings", NcclTopic::topology},
        Case{"misc/socket.cc:845 -> 6", NcclTopic::propagation},
        Case{"channel.cc:12 -> 1", NcclTopic::propagation},
        Case{"Failed to initialize NET plugin IB", NcclTopic::net_fallback},
        Case{"socketProgressOpt: abort called", NcclTopic::abort_called},
        Case{" 0 : NET/0-0 GPU/0-60 NET/0-0", NcclTopic::graph},
        Case{"12 : NET/0-0 GPU/0-60 NET/0-0", NcclTopic::graph},
        Case{"Pattern 4, crossNic 0, nChannels 1, bw 1.2/1.2, type LOC/PHB, sameChannels 1", NcclTopic::graph},
        Case{"=== System : maxBw 1.2 totalBw 48.0 ===", NcclTopic::graph},
        Case{"==========================================", NcclTopic::ignored},
        Case{"CPU/0-ffffffffffffff (1/1/4)", NcclTopic::graph},
        Case{"                 + NET[1.2] - NET/0-0 (0/0/0/1.250000)", NcclTopic::graph},
        Case{"NET/0-0 :GPU/0-60 (3/1.2/PHB) CPU/0-0 (2/1.2/PHB)", NcclTopic::graph},
        Case{"2 coll channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer", NcclTopic::graph},
        Case{"threadThresholds 8/8/64 | 32/8/64 | 512 | 512", NcclTopic::graph},
        Case{"Latency/AlgBw |    Tree/    LL |", NcclTopic::tuning_row},
        Case{"ReduceScatter |    21.6/   0.8 |", NcclTopic::tuning_row},
        Case{"  Algorithm   |            Tree |", NcclTopic::tuning_row},
        Case{"Input: { .comm = 0x1, .func = AllReduce }", NcclTopic::choice},
        Case{"Best tuning { .id = 5 }", NcclTopic::choice},
        Case{"GP", NcclTopic::perhaps},
        Case{"New proxy recv connection 1 from local rank 0, transport 2", NcclTopic::ignored},
        Case{"", NcclTopic::ignored}})
    EXPECT_EQ(ClassifyInfo(c.line), c.topic) << c.line;
  EXPECT_EQ(ClassifyCall("ncclAllReduce(1,2,3)"), NcclTopic::api_call);
  EXPECT_EQ(ClassifyCall("ncclCommSplit(0x1, 1, 1, 0x2, 1, 4)"), NcclTopic::api_init);
  EXPECT_EQ(ClassifyCall("ncclGroupStart()"), NcclTopic::ignored);
  EXPECT_EQ(ClassifyCall("nccl"), NcclTopic::ignored);
}

TEST(NcclLogTopology, ReadsRings) {
  NcclRing ring;
  ASSERT_TRUE(ParseRing("Ring 00 : 3 -> 0 -> 1", &ring));
  EXPECT_EQ(ring.channel, 0);
  EXPECT_EQ(ring.ranks, (std::vector<int32_t>{3, 0, 1}));
  ASSERT_TRUE(ParseRing("Ring 07 : 0 -> 1 -> 2 -> 3 -> 0", &ring));
  EXPECT_EQ(ring.ranks, (std::vector<int32_t>{0, 1, 2, 3, 0}));
  EXPECT_FALSE(ParseRing("Ring 00 : 3 ->", &ring));
}

TEST(NcclLogTopology, ReadsTreesOfBothForms) {
  std::vector<NcclTree> trees;
  ASSERT_TRUE(ParseTrees("Trees [0] 2/-1/-1->0->-1 [1] -1/-1/-1->0->1", &trees));
  ASSERT_EQ(trees.size(), 2u);
  EXPECT_EQ(trees[0].down[0], 2);
  EXPECT_EQ(trees[0].rank, 0);
  EXPECT_EQ(trees[1].up, 1);
  ASSERT_TRUE(ParseTrees("Tree 1 : 7 -> 3 -> 5/1/-1", &trees));
  EXPECT_EQ(trees[0].up, 7);
  EXPECT_EQ(trees[0].rank, 3);
  EXPECT_EQ(trees[0].down[1], 1);
  EXPECT_FALSE(ParseTrees("Trees [0] 2/", &trees));
}

TEST(NcclLogTopology, ReadsChannelOrders) {
  NcclChannelOrder order;
  ASSERT_TRUE(ParseChannelOrder("Channel 01/02 :    0   1   2   3", &order));
  EXPECT_EQ(order.channel, 1);
  EXPECT_EQ(order.channels, 2);
  EXPECT_EQ(order.ranks, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_FALSE(order.cut);
  ASSERT_TRUE(ParseChannelOrder("Channel 00/32 : 0 1 2 3 ...", &order));
  EXPECT_TRUE(order.cut);
  EXPECT_FALSE(ParseChannelOrder("Channel 00/0 : 1[0] -> 2[0] via P2P/IPC", &order));
}

TEST(NcclLogTopology, ReadsWhatWasConnected) {
  NcclConnected connected;
  ASSERT_TRUE(ParseConnected("Connected all rings, use ring PXN 0 GDR 1", &connected));
  EXPECT_EQ(connected.what, "all rings");
  EXPECT_EQ(connected.pxn, 0);
  EXPECT_EQ(connected.gdr, 1);
  ASSERT_TRUE(ParseConnected("Connected all trees", &connected));
  EXPECT_EQ(connected.gdr, -1);
}

TEST(NcclLogTopology, ReadsTheChoiceOfEveryRelease) {
  NcclChoice choice;
  ASSERT_TRUE(ParseChoice("AllReduce: 4198400 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}", &choice));
  EXPECT_EQ(choice.function, "AllReduce");
  EXPECT_EQ(choice.bytes, 4198400);
  EXPECT_EQ(choice.algorithm, "RING");
  EXPECT_EQ(choice.protocol, "SIMPLE");
  EXPECT_EQ(choice.last_channel, 1);
  ASSERT_TRUE(ParseChoice("4198400 Bytes -> Algo 0 proto 1 time 8.5", &choice));
  EXPECT_EQ(choice.function, "");
  EXPECT_EQ(choice.algorithm, "TREE");
  EXPECT_EQ(choice.protocol, "LL128");
  ASSERT_TRUE(ParseChoice("AllGather [Symmetric]: 4096 Bytes -> Kernel AllGather_LL nchannels 2 nthreads 512 nWorks 1",
                          &choice));
  EXPECT_EQ(choice.variant, "Symmetric");
  EXPECT_EQ(choice.algorithm, "AllGather_LL");
  EXPECT_FALSE(ParseChoice("AllReduce: 41984", &choice));
}

}  // namespace
}  // namespace tacet
