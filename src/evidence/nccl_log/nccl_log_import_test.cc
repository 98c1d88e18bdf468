// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "evidence/nccl_log/nccl_log_identity.h"

namespace tacet {

extern const Format kNcclLogFormat;

namespace {

constexpr std::string_view kInit =
    "vm:7:7 [0] NCCL INFO ncclCommInitRank comm 0xa1 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId c8000 commId 0x74c2 - "
    "Init START\n"
    "vm:7:7 [0] NCCL INFO ncclCommInitRank comm 0xa1 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId c8000 commId 0x74c2 - "
    "Init COMPLETE\n";
constexpr std::string_view kCall =
    "vm:7:7 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 count 64 datatype 7 op 0 root 0 comm 0xa1 "
    "[nranks=8] stream 0x1\n";

Fragment Read(std::string_view text, std::string_view path = "log.txt") {
  Fragment fragment;
  kNcclLogFormat.read({path, text, false}, fragment);
  EXPECT_EQ(fragment.bytes.total, text.size());
  EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, text.size());
  return fragment;
}

std::string Sample(std::string_view name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/nccl_log/samples/" + std::string(name),
                   std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

Fragment ReadSample(std::string_view name) { return Read(Sample(name), name); }

std::vector<const Event*> EventsOf(const Fragment& fragment, EventKind kind) {
  std::vector<const Event*> found;
  for (const Event& event : fragment.events)
    if (event.kind == kind) found.push_back(&event);
  return found;
}

std::string Line(std::string_view message) { return "vm:7:7 [0] NCCL INFO " + std::string(message) + "\n"; }
std::string Warn(std::string_view message) {
  return "\nvm:7:9 [0] misc/x.cc:12 NCCL WARN " + std::string(message) + "\n";
}

TEST(NcclLogRecognise, SaysYesToEverySample) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TACET_SOURCE_DIR) + "/src/evidence/nccl_log/samples")) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(kNcclLogFormat.recognise(Sample(name), name), Recognition::yes) << name;
  }
}

TEST(NcclLogRecognise, SaysNoToOtherFiles) {
  for (const std::string_view text :
       {"", "NCCL",
        "[2026-11-15T00:13:56.360762] rank=0 pid 577 job -\n[rank0]: torch.distributed.DistBackendError: NCCL error "
        "in: x\n",
        "# nThread 1 nGpus 8 minBytes 8\n# NCCL version 2.28.9+cuda13.0\n#  Rank  0 Group  0 Pid  1 on vm device  0\n",
        "[  123.456] NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=python\n",
        "{\"log\":\"vm:1:2 [0] NCCL INFO Using network IB\"}\n",
        "NCCL version 2.28.9 compiled with CUDA \"13.0\"\nJob summary\n===========\n",
        "Thread 0x00007f (most recent call first):\n  File \"x.py\", line 3 in <module>\n"})
    EXPECT_EQ(kNcclLogFormat.recognise(text, "nccl.log"), Recognition::no) << text;
}

TEST(NcclLogRecognise, IsUnsureOfAFewLinesAmongMany) {
  std::string text(kInit);
  for (int i = 0; i < 50; ++i) text += "step " + std::to_string(i) + " loss 2.5\n";
  EXPECT_EQ(kNcclLogFormat.recognise(text, "stdout.log"), Recognition::maybe);
  EXPECT_EQ(kNcclLogFormat.recognise("NCCL version 2.27.7+cuda12.9\n", "stdout.log"), Recognition::maybe);
}

TEST(NcclLogRecognise, DoesNotNeedTheWholeFirstLine) {
  EXPECT_EQ(kNcclLogFormat.recognise(kInit.substr(0, 60), ""), Recognition::yes);
  EXPECT_EQ(kNcclLogFormat.recognise(kInit.substr(0, 15), ""), Recognition::no);
}

TEST(NcclLogImport, GivesOneSpeakerAGroupAndAStream) {
  const Fragment fragment = Read(std::string(kInit) + std::string(kCall));
  ASSERT_EQ(fragment.speakers.size(), 1u);
  const Speaker& speaker = fragment.speakers[0];
  EXPECT_EQ(speaker.rank, Rank{3});
  EXPECT_EQ(speaker.rank_certainty, Certainty::stated);
  EXPECT_EQ(speaker.host, "vm");
  EXPECT_EQ(speaker.pid, 7);
  EXPECT_EQ(speaker.device, 3);
  EXPECT_EQ(speaker.world_size, 8);
  ASSERT_EQ(fragment.groups.size(), 1u);
  EXPECT_EQ(fragment.groups[0].comm_id, 0x74c2u);
  EXPECT_EQ(fragment.groups[0].size, 8);
  EXPECT_EQ(fragment.groups[0].places, (std::vector<GroupPlace>{{{3}, {3}}}));
  ASSERT_EQ(fragment.streams.size(), 1u);
  const CallStream& stream = fragment.streams[0];
  EXPECT_EQ(stream.source, CallSource::nccl_log);
  EXPECT_TRUE(stream.from_start);
  EXPECT_FALSE(stream.knows_start);
  EXPECT_FALSE(stream.knows_finish);
  EXPECT_FALSE(stream.stub);
  ASSERT_EQ(stream.calls.size(), 1u);
  const Call& call = stream.calls[0];
  EXPECT_EQ(call.kind, OpKind::all_reduce);
  EXPECT_EQ(call.state, CallState::enqueued);
  EXPECT_EQ(call.seq, 1u);
  EXPECT_EQ(call.in_elements, 64);
  EXPECT_EQ(call.type, DataType::float32);
  EXPECT_EQ(call.reduction, ReduceOp::sum);
  EXPECT_FALSE(call.peer.known());
  EXPECT_EQ(fragment.strings.Get(call.name), "AllReduce");
  EXPECT_EQ(call.line, 3u);
  EXPECT_EQ(call.offset, kInit.size());
}

TEST(NcclLogImport, CountsCallsItselfBecauseOpCountMayStayZero) {
  std::string text(kInit);
  for (int i = 0; i < 3; ++i) text += kCall;
  const Fragment fragment = Read(text);
  ASSERT_EQ(fragment.streams[0].calls.size(), 3u);
  EXPECT_EQ(fragment.streams[0].calls[2].seq, 3u);
  EXPECT_EQ(fragment.streams[0].calls[2].record, 0u);
}

TEST(NcclLogImport, NumbersSendsAndReceivesApart) {
  const std::string text = std::string(kInit) + std::string(kCall) +
                           Line(
                               "Send: opCount 1 sendbuff (nil) recvbuff 0x1 count 8 datatype 9 op 0 root 5 comm 0xa1 "
                               "[nranks=8] stream 0x1") +
                           Line(
                               "Recv: opCount 1 sendbuff (nil) recvbuff 0x1 count 8 datatype 9 op 0 root 2 comm 0xa1 "
                               "[nranks=8] stream 0x1") +
                           std::string(kCall);
  const std::vector<Call> calls = Read(text).streams[0].calls;
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[1].kind, OpKind::send);
  EXPECT_TRUE(calls[1].has(kPointToPoint));
  EXPECT_EQ(calls[1].seq, 1u);
  EXPECT_EQ(calls[1].peer, GroupRank{5});
  EXPECT_EQ(calls[1].reduction, ReduceOp::unknown);
  EXPECT_EQ(calls[2].seq, 2u);
  EXPECT_EQ(calls[3].seq, 2u);
  EXPECT_FALSE(calls[3].has(kPointToPoint));
}

TEST(NcclLogImport, KeepsTheRootOfRootedCollectivesOnly) {
  const Fragment fragment = ReadSample("timestamps_subsecond.log");
  const std::vector<Call>& calls = fragment.streams[0].calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].kind, OpKind::broadcast);
  EXPECT_EQ(calls[0].peer, GroupRank{1});
  EXPECT_EQ(calls[0].type, DataType::int8);
  EXPECT_EQ(calls[1].kind, OpKind::reduce);
  EXPECT_EQ(calls[1].reduction, ReduceOp::max);
  EXPECT_EQ(calls[1].enter_wall_ns - calls[0].enter_wall_ns, 23'500'001'000);
  EXPECT_EQ(fragment.streams[0].captured_wall_ns, calls[1].enter_wall_ns);
}

TEST(NcclLogImport, AStreamWithoutInitDoesNotStartAtTheBeginning) {
  const Fragment fragment = Read(kCall, "nccl_rank3.log");
  EXPECT_FALSE(fragment.streams[0].from_start);
  EXPECT_EQ(fragment.groups[0].size, 8);
  EXPECT_EQ(fragment.groups[0].comm_id, 0u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
}

TEST(NcclLogImport, SilenceOfTheRecorderIsAStub) {
  EXPECT_TRUE(Read(kInit).streams[0].stub);
  EXPECT_FALSE(Read(std::string(kInit) + Line("NCCL_DEBUG_SUBSYS set by environment to INIT,COLL")).streams[0].stub);
}

TEST(NcclLogImport, ARankWithoutCallsAmongRanksWithCallsIsNoStub) {
  const Fragment fragment = ReadSample("mixed_srun_labels.log");
  ASSERT_EQ(fragment.streams.size(), 3u);
  EXPECT_TRUE(fragment.streams[1].calls.empty());
  EXPECT_FALSE(fragment.streams[1].stub);
}

TEST(NcclLogImport, TellsTheStagesOfACommunicator) {
  const Fragment fragment =
      Read(std::string(kInit) + Line("comm 0xa1 rank 3 nranks 8 cudaDev 3 busId c8000 - Destroy COMPLETE"));
  const auto started = EventsOf(fragment, EventKind::init_started);
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0]->comm, 0x74c2u);
  EXPECT_EQ(started[0]->As<CommunicatorSetup>().ranks, 8);
  EXPECT_EQ(started[0]->As<CommunicatorSetup>().device, 3);
  EXPECT_EQ(started[0]->group_rank, GroupRank{3});
  EXPECT_EQ(started[0]->As<CommunicatorSetup>().bus_id, "c8000");
  EXPECT_EQ(EventsOf(fragment, EventKind::init_completed).size(), 1u);
  ASSERT_EQ(EventsOf(fragment, EventKind::comm_destroyed).size(), 1u);
  const auto finished = EventsOf(fragment, EventKind::process_finished);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0]->source.line, 3u);
}

TEST(NcclLogImport, AnAbortOrAnOpenCommunicatorIsNoGoodEnd) {
  const std::string destroy = Line("comm 0xa1 rank 3 nranks 8 cudaDev 3 busId c8000 - Destroy COMPLETE");
  const std::string abort = Line("comm 0xa1 rank 3 nRanks 8 cudaDev 3 busId c8000 - Abort START") +
                            Line("comm 0xa1 rank 3 nranks 8 cudaDev 3 busId c8000 - Abort COMPLETE");
  const Fragment aborted = Read(std::string(kInit) + abort);
  ASSERT_EQ(EventsOf(aborted, EventKind::comm_aborted).size(), 1u);
  EXPECT_EQ(EventsOf(aborted, EventKind::comm_aborted)[0]->source.line, 3u);
  EXPECT_EQ(EventsOf(aborted, EventKind::comm_aborted)[0]->As<CommunicatorEnd>().how, "abort");
  EXPECT_TRUE(EventsOf(aborted, EventKind::process_finished).empty());
  const std::string other =
      Line("ncclCommInitRank comm 0xb2 rank 0 nranks 2 cudaDev 3 nvmlDev 3 busId c8000 commId 0x75 - Init START");
  EXPECT_TRUE(EventsOf(Read(std::string(kInit) + other + destroy), EventKind::process_finished).empty());
  EXPECT_TRUE(EventsOf(Read(kInit), EventKind::process_finished).empty());
}

TEST(NcclLogImport, AFreedAddressIsAnotherCommunicator) {
  const std::string second =
      Line("ncclCommInitRank comm 0xa1 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId c8000 commId 0x99 - Init START") +
      Line("ncclCommInitRank comm 0xa1 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId c8000 commId 0x99 - Init COMPLETE");
  const Fragment fragment =
      Read(std::string(kInit) + std::string(kCall) +
           Line("comm 0xa1 rank 3 nranks 8 cudaDev 3 busId c8000 - Destroy COMPLETE") + second + std::string(kCall));
  ASSERT_EQ(fragment.groups.size(), 2u);
  const std::vector<Call>& calls = fragment.streams[0].calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_NE(calls[0].group, calls[1].group);
  EXPECT_EQ(calls[1].seq, 1u);
  EXPECT_EQ(fragment.groups[static_cast<uint32_t>(calls[1].group)].comm_id, 0x99u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
}

TEST(NcclLogImport, ComputesTheIdsOfSplits) {
  const Fragment fragment = ReadSample("release_2.28_mesh_rank3.log");
  EXPECT_TRUE(fragment.diagnostics.empty());
  ASSERT_EQ(fragment.groups.size(), 3u);
  std::vector<uint64_t> ids;
  for (const Group& group : fragment.groups) ids.push_back(group.comm_id);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<uint64_t>{0x74c2aad0c83fa31, 10013241168830111106u, 13648531030292480976u}));
  for (const Group& group : fragment.groups) EXPECT_EQ(group.parent_comm_id, group.size < 8 ? 0x74c2aad0c83fa31u : 0u);
  EXPECT_EQ(fragment.streams[0].calls.size(), 49u);
}

TEST(NcclLogImport, ComputesTheSameIdWithoutThePluginsLine) {
  std::string text;
  const std::string sample = Sample("release_2.28_mesh_rank3.log");
  for (size_t at = 0; at < sample.size();) {
    const size_t end = std::min(sample.find('\n', at), sample.size() - 1) + 1;
    if (sample.substr(at, end - at).find("commHash") == std::string::npos) text += sample.substr(at, end - at);
    at = end;
  }
  ASSERT_LT(text.size(), sample.size());
  const Fragment with = Read(sample), without = Read(text);
  ASSERT_EQ(with.groups.size(), without.groups.size());
  for (size_t i = 0; i < with.groups.size(); ++i) EXPECT_EQ(with.groups[i].comm_id, without.groups[i].comm_id);
}

TEST(NcclLogImport, TakesThePluginsHashAndNameWhereTheyDiffer) {
  const std::string text = std::string(kInit) +
                           Line(
                               "ncclCommSplit comm 0xb2 rank 1 nranks 4 cudaDev 3 nvmlDev 3 busId c8000 parent 0xa1 "
                               "splitCount 1 color 1 key 1- Init START") +
                           Line("PROFILER/Plugin: init commName: tp_group commHash: 4660 nranks: 4 rank: 1") +
                           Line(
                               "ncclCommSplit comm 0xb2 rank 1 nranks 4 cudaDev 3 nvmlDev 3 busId c8000 parent 0xa1 "
                               "splitCount 1 color 1 key 1 - Init COMPLETE");
  const Fragment fragment = Read(text);
  ASSERT_EQ(fragment.groups.size(), 2u);
  EXPECT_EQ(fragment.groups[1].comm_id, 4660u);
  EXPECT_EQ(fragment.groups[1].description, "tp_group");
  for (const Event* event : EventsOf(fragment, EventKind::init_started))
    EXPECT_EQ(event->comm, event->As<CommunicatorSetup>().ranks == 4 ? 4660u : 0x74c2u);
}

TEST(NcclLogImport, ASplitOfAnUnknownParentHasNoId) {
  const Fragment fragment = Read(Line("ncclCommSplit comm 0xb2 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId c8000 parent "
                                      "0xa1 splitCount 1 color 1 key 1- Init START") +
                                 std::string(kInit));
  ASSERT_EQ(fragment.groups.size(), 2u);
  EXPECT_EQ(fragment.groups[0].comm_id, 0u);
}

TEST(NcclLogImport, TellsRepeatedSplitsOf23Apart) {
  const Fragment fragment = ReadSample("release_2.23_split.log");
  ASSERT_EQ(fragment.groups.size(), 3u);
  EXPECT_EQ(fragment.groups[1].comm_id, HashOfSplit(23, 0x0123456789abcdef, -1, 0));
  EXPECT_NE(fragment.groups[1].comm_id, fragment.groups[2].comm_id);
  EXPECT_NE(fragment.groups[2].comm_id, 0u);
}

TEST(NcclLogImport, ReadsTheCallLevelOnlyWhereNothingElseIsThere) {
  const Fragment fragment = ReadSample("call_level.log");
  ASSERT_EQ(fragment.streams.size(), 1u);
  const std::vector<Call>& calls = fragment.streams[0].calls;
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[0].kind, OpKind::send);
  EXPECT_EQ(calls[1].seq, 2u);
  EXPECT_EQ(calls[2].kind, OpKind::all_reduce);
  EXPECT_EQ(calls[3].reduction, ReduceOp::avg);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_EQ(EventsOf(fragment, EventKind::init_completed).size(), 2u);
  const std::string both =
      std::string(kInit) + std::string(kCall) + "vm:7:7 NCCL CALL ncclAllReduce(1,1,64,7,0,0,0xa1,0x1)\n";
  EXPECT_EQ(Read(both).streams[0].calls.size(), 1u);
}

TEST(NcclLogImport, ReadsTheFormsThatDocumentsShow) {
  const Fragment fragment = ReadSample("document_forms_rank5.log");
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{5});
  const CallStream& stream = fragment.streams[0];
  ASSERT_EQ(stream.calls.size(), 3u);
  EXPECT_EQ(stream.calls[0].state, CallState::completed);
  EXPECT_EQ(stream.calls[0].Bytes(), 4194304);
  EXPECT_EQ(stream.calls[1].state, CallState::enqueued);
  EXPECT_EQ(stream.calls[2].Bytes(), 104857600);
  EXPECT_TRUE(stream.knows_finish);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(NcclLogImport, AProcessWithTwoGpusIsTwoSpeakers) {
  const Fragment fragment = ReadSample("one_process_two_gpus.log");
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{0});
  EXPECT_EQ(fragment.speakers[1].rank, Rank{1});
  EXPECT_EQ(fragment.speakers[1].device, 1);
  EXPECT_EQ(fragment.speakers[1].pid, 5);
  ASSERT_EQ(fragment.streams.size(), 2u);
  EXPECT_EQ(fragment.streams[0].calls.size(), 1u);
  EXPECT_EQ(fragment.streams[1].calls.size(), 1u);
  EXPECT_EQ(fragment.groups.size(), 1u);
}

TEST(NcclLogImport, TellsTheRanksOfAMixedFileApart) {
  const Fragment fragment = ReadSample("mixed_srun_labels.log");
  ASSERT_EQ(fragment.speakers.size(), 3u);
  EXPECT_EQ(fragment.speakers[1].rank, Rank{2});
  EXPECT_EQ(fragment.speakers[1].host, "node02");
  ASSERT_EQ(fragment.groups.size(), 1u);
  EXPECT_EQ(fragment.groups[0].places.size(), 3u);
  for (const GroupPlace& one : fragment.groups[0].places) EXPECT_EQ(one.place.value, one.rank.value);
  EXPECT_EQ(fragment.bytes.not_understood, std::string_view("0: loading dataset shard 0\n").size());
}

TEST(NcclLogImport, UsesLaunchersNumbersWithCare) {
  const Fragment fragment = ReadSample("mixed_launchers.log");
  ASSERT_EQ(fragment.speakers.size(), 11u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_FALSE(fragment.speakers[2].rank.known()) << "[default3] is a local rank";
  EXPECT_EQ(fragment.speakers[3].rank, Rank{6});
  EXPECT_EQ(fragment.speakers[3].rank_certainty, Certainty::stated);
  const Fragment node = Read("0: vm:7:7 [0] NCCL INFO a\n0: vm:8:8 [0] NCCL INFO b\n");
  EXPECT_FALSE(node.speakers[0].rank.known()) << "a label that two processes share numbers nodes";
}

TEST(NcclLogRank, AgreesWithTheFileName) {
  const Fragment fragment = Read(kInit, "run/nccl_rank3.log");
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::stated);
  EXPECT_TRUE(fragment.diagnostics.empty());
}

TEST(NcclLogRank, ACommunicatorThatHasNoPlaceForTheNamesRankIsAPart) {
  const Fragment fragment = Read(kInit, "run/nccl_rank11.log");
  EXPECT_EQ(fragment.speakers[0].rank, Rank{11});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_EQ(fragment.speakers[0].world_size, -1);
  EXPECT_EQ(fragment.groups[0].places, (std::vector<GroupPlace>{{{3}, {11}}}));
  ASSERT_EQ(fragment.diagnostics.size(), 1u);
  EXPECT_EQ(fragment.diagnostics[0].code, "rank-disagrees");
}

TEST(NcclLogRank, PrefersTheCommunicatorToAFittingName) {
  const Fragment fragment = Read(kInit, "node1/nccl_rank1.log");
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_EQ(fragment.diagnostics.size(), 1u);
}

TEST(NcclLogRank, ANumberInTheNameThatIsNotCalledRankSaysNothing) {
  const Fragment fragment = Read(kInit, "node17.log");
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::stated);
  EXPECT_TRUE(fragment.diagnostics.empty());
}

TEST(NcclLogRank, PlacesThatDifferAreNoGlobalRank) {
  const std::string text =
      Line("ncclCommInitRank comm 0xa1 rank 0 nranks 2 cudaDev 3 nvmlDev 3 busId c8 commId 0x1 - Init START") +
      Line("ncclCommInitRank comm 0xb2 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId c8 commId 0x2 - Init START");
  EXPECT_FALSE(Read(text).speakers[0].rank.known());
  EXPECT_EQ(Read(text, "nccl_rank1.log").speakers[0].rank, Rank{1});
  EXPECT_EQ(Read(text, "nccl_rank1.log").speakers[0].rank_certainty, Certainty::assumed);
}

TEST(NcclLogRank, ASmallerCommunicatorThanAnothersIsNotTheWorld) {
  const std::string text = std::string(kInit) +
                           "vm:8:8 [0] NCCL INFO ncclCommInitRank comm 0xa1 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId "
                           "c8 commId 0x9 - Init START\n";
  const Fragment fragment = Read(text);
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{3});
  EXPECT_FALSE(fragment.speakers[1].rank.known());
}

TEST(NcclLogRank, AnExplicitLabelWins) {
  RankEvidence evidence;
  evidence.stated_by_label = Rank{6};
  evidence.comm_rank = 2;
  evidence.comm_size = evidence.largest_size = 4;
  const RankVerdict verdict = ResolveRank(evidence);
  EXPECT_EQ(verdict.rank, Rank{6});
  EXPECT_EQ(verdict.certainty, Certainty::stated);
  EXPECT_EQ(verdict.world_size, -1);
}

TEST(NcclLogRank, TheProxyNamesTheRankOfItsProcess) {
  const auto warn = [](std::string_view head, std::string_view proxy) {
    return std::string(head) + " proxy.cc:1485 NCCL WARN [Proxy Service " + std::string(proxy) +
           "] Failed to execute operation Connect from rank 1, retcode 2\n";
  };
  EXPECT_EQ(Read(warn("n1:70:71 [2]", "10")).speakers[0].rank, Rank{10});
  EXPECT_EQ(Read(warn("n1:70:71 [2]", "10")).speakers[0].rank_certainty, Certainty::assumed);
  // A place in a group smaller than that on the node, and two processes with one number: of parts of the job.
  EXPECT_FALSE(Read(warn("n1:70:71 [5]", "1")).speakers[0].rank.known());
  const Fragment two = Read(warn("n1:70:71 [0]", "1") + warn("n1:80:81 [1]", "1"));
  ASSERT_EQ(two.speakers.size(), 2u);
  EXPECT_FALSE(two.speakers[0].rank.known());
}

TEST(NcclLogRank, AHostIsKnownWithoutItsPid) {
  const std::string rest = " [5] ibvwrap.c:262 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out\n";
  EXPECT_EQ(Read("[2026-03-13 22:26:02] node-01.example.com:XXXXXX" + rest).speakers[0].host, "node-01.example.com");
  EXPECT_EQ(Read("n7:<pid>:<tid>" + rest).speakers[0].host, "n7");
  EXPECT_EQ(Read("22:--" + rest).speakers[0].host, "") << "a time of day";
}

TEST(NcclLogEvents, TellsSettingsOnce) {
  const Fragment fragment =
      Read(Line("NCCL_SOCKET_IFNAME set by environment to ib7") + Line("NCCL_SOCKET_IFNAME set to ib7") +
           Line("NCCL_IB_DISABLE set by environment to 1."));
  const auto settings = EventsOf(fragment, EventKind::environment);
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0]->As<EnvironmentSetting>().name, "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(settings[0]->As<EnvironmentSetting>().value, "ib7");
  EXPECT_EQ(settings[1]->As<EnvironmentSetting>().value, "1");
}

TEST(NcclLogEvents, TellsInterfacesAndDevices) {
  const Fragment fragment = ReadSample("release_2.12_ib.log");
  const auto devices = EventsOf(fragment, EventKind::device_found);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1]->As<NetworkDevice>().name, "mlx5_1:1/RoCE");
  const auto interfaces = EventsOf(fragment, EventKind::interface_used);
  ASSERT_EQ(interfaces.size(), 1u) << "the same interface serves bootstrap and out of band";
  EXPECT_EQ(interfaces[0]->As<NetworkDevice>().name, "bond0");
  EXPECT_EQ(interfaces[0]->As<NetworkDevice>().address, "10.20.0.7");
  EXPECT_EQ(EventsOf(fragment, EventKind::network)[0]->As<NetworkName>().name, "IB");
}

TEST(NcclLogEvents, AnEmptyListOfAdaptersIsNoDevice) {
  const Fragment fragment =
      Read(Line("NET/IB : No device found.") + Line("NET/IB : Using [RO]; OOB eth0:192.0.2.2<0>"));
  EXPECT_TRUE(EventsOf(fragment, EventKind::device_found).empty());
  ASSERT_EQ(EventsOf(fragment, EventKind::no_device).size(), 1u);
  EXPECT_EQ(EventsOf(fragment, EventKind::no_device)[0]->As<NetworkName>().name, "IB");
  EXPECT_EQ(EventsOf(fragment, EventKind::interface_used).size(), 1u);
}

TEST(NcclLogEvents, FoldsTheChannelsOfAConnection) {
  std::string text(kInit);
  for (int channel = 0; channel < 16; ++channel)
    text += Line("Channel 0" + std::to_string(channel % 10) + "/0 : 3[3] -> 4[4] [send] via NET/IB/" +
                 std::to_string(channel) + "/GDRDMA");
  text += Line("Channel 00/0 : 2[2] -> 3[3] [receive] via NET/IB/0") +
          Line("Channel 00/0 : 3[3] -> 4[4] [send] via NET/IB/0");
  const Fragment fragment = Read(text);
  const auto transports = EventsOf(fragment, EventKind::transport);
  ASSERT_EQ(transports.size(), 3u);
  EXPECT_EQ(transports[0]->As<PairTransport>().via, "NET/IB/0/GDRDMA");
  EXPECT_EQ(transports[0]->As<PairTransport>().lines, 16);
  EXPECT_EQ(transports[0]->As<PairTransport>().direction, TransportDirection::send);
  EXPECT_EQ(transports[0]->comm, 0x74c2u);
  EXPECT_EQ(transports[0]->group_rank, GroupRank{3});
  EXPECT_EQ(transports[0]->peer_group_rank, GroupRank{4});
  EXPECT_EQ(transports[1]->As<PairTransport>().direction, TransportDirection::receive);
}

TEST(NcclLogIdentity, ConnectionsNameTheRankThatPrintsThem) {
  const std::string text = Line("Channel 00 : 3[b1000] -> 0[1a000] [receive] via NET/IB/0/GDRDMA") +
                           Line("Channel 00 : 0[1a000] -> 1[1b000] via P2P/IPC");
  const Fragment fragment = Read(text);
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{0});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  // Two communicators, in which the process has different places.
  EXPECT_FALSE(Read(text + Line("Channel 00 : 2[1a000] -> 5[1b000] [send] via NET/IB/0")).speakers[0].rank.known());
}

TEST(NcclLogIdentity, TheLastProcessOfTheJobIsTheRankThatIsLeft) {
  const auto init = [](std::string_view head, int rank, int size) {
    return std::string(head) + " NCCL INFO comm 0x8f3a1c0 rank " + std::to_string(rank) + " nranks " +
           std::to_string(size) + " cudaDev 0 nvmlDev 0 busId 1000 commId 0x7c2d - Init START\n";
  };
  const std::string other = "ws1:22031:22031 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\n";
  const Fragment fragment = Read(other + init("ws2:9310:9402 [0]", 1, 2));
  ASSERT_EQ(fragment.speakers.size(), 2u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{0});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  // Two ranks are left, or it is the same rank under another pid.
  EXPECT_FALSE(Read(other + init("ws2:9310:9402 [0]", 1, 3)).speakers[0].rank.known());
  EXPECT_FALSE(Read(other + init("ws1:9310:9402 [0]", 1, 2)).speakers[0].rank.known());
}

TEST(NcclLogEvents, GivesEarlyConnectionsToTheInitLineThatFollows) {
  const Fragment fragment = ReadSample("release_2.4_ring.log");
  for (const Event* transport : EventsOf(fragment, EventKind::transport))
    EXPECT_NE(transport->comm, 0u) << transport->source.line;
  EXPECT_EQ(fragment.speakers[1].rank, Rank{1});
  EXPECT_EQ(fragment.groups[0].comm_id, fragment.groups[1].comm_id) << "the largest communicator of both is the same";
  EXPECT_NE(fragment.groups[0].comm_id, 0u);
  ASSERT_EQ(EventsOf(fragment, EventKind::device_found).size(), 2u);
}

TEST(NcclLogEvents, TellsAPeersDeath) {
  const Fragment fragment = ReadSample("release_2.28_peer_died_rank0.log");
  const auto warnings = EventsOf(fragment, EventKind::nccl_warning);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0]->As<Warning>().id, "connection-closed");
  EXPECT_EQ(warnings[0]->As<Warning>().role, NcclWarningRole::secondary);
  EXPECT_EQ(warnings[0]->As<Warning>().times, 2);
  EXPECT_EQ(warnings[0]->As<Warning>().place.file, "misc/socket.cc");
  EXPECT_EQ(warnings[0]->As<Warning>().place.line, 72u);
  EXPECT_EQ(EventsOf(fragment, EventKind::connection_lost).size(), 1u);
  const auto errors = EventsOf(fragment, EventKind::nccl_error);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]->As<NcclError>().code, 6);
  EXPECT_LT(warnings[0]->source.offset, errors[0]->source.offset);
  EXPECT_TRUE(EventsOf(fragment, EventKind::process_finished).empty());
}

TEST(NcclLogEvents, TellsAMissingInterface) {
  const Fragment fragment = ReadSample("release_2.28_no_interface_rank1.log");
  const auto warnings = EventsOf(fragment, EventKind::nccl_warning);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0]->As<Warning>().id, "socket-no-interface");
  EXPECT_EQ(warnings[0]->As<Warning>().role, NcclWarningRole::cause);
  EXPECT_EQ(EventsOf(fragment, EventKind::nccl_error)[0]->As<NcclError>().code, 5);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{1});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
}

TEST(NcclLogEvents, AnErrorOfANetworkThatWasOnlyTriedIsHarmless) {
  const Fragment fragment = ReadSample("release_2.28_forced_algorithm_rank0.log");
  EXPECT_TRUE(EventsOf(fragment, EventKind::nccl_error).empty());
  EXPECT_EQ(EventsOf(fragment, EventKind::environment).size(), 7u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u) << "the rows of the matrix have no prefix";
}

TEST(NcclLogEvents, ErrorsDuringAnAbortAreItsConsequence) {
  const Fragment fragment = ReadSample("release_2.28_aborted_rank1.log");
  EXPECT_TRUE(EventsOf(fragment, EventKind::nccl_error).empty());
  EXPECT_EQ(EventsOf(fragment, EventKind::comm_aborted).size(), 1u);
  EXPECT_TRUE(EventsOf(fragment, EventKind::process_finished).empty());
}

TEST(NcclLogEvents, TellsCompletionErrorsAndTheirHint) {
  const Fragment fragment = ReadSample("release_2.30_shrink.log");
  const auto warnings = EventsOf(fragment, EventKind::nccl_warning);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0]->As<Warning>().id, "ib-completion-error");
  EXPECT_EQ(warnings[0]->As<Warning>().number, 12);
  EXPECT_EQ(warnings[0]->As<Warning>().place.function, "ncclIbTest");
  EXPECT_EQ(warnings[1]->As<Warning>().id, "ib-hint");
  EXPECT_EQ(warnings[1]->As<Warning>().role, NcclWarningRole::notice);
  EXPECT_EQ(warnings[2]->As<Warning>().id, "nvls-bind-failed");
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
  ASSERT_EQ(fragment.streams[0].calls.size(), 1u) << "one-sided operations have no place in the order";
  EXPECT_EQ(fragment.streams[0].calls[0].kind, OpKind::all_to_all);
}

TEST(NcclLogEvents, KeepsAFloodOfWarningsShort) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += Warn("NET/IB : Got completion with error 5, opcode " + std::to_string(i));
  const Fragment fragment = Read(text);
  const auto warnings = EventsOf(fragment, EventKind::nccl_warning);
  EXPECT_EQ(warnings.size(), 32u);
  EXPECT_EQ(warnings[0]->As<Warning>().times, 1000);
}

TEST(NcclLogEvents, NamesTheTwoRanksOfADuplicateGpu) {
  const Fragment fragment = Read(Warn("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60"));
  const auto warnings = EventsOf(fragment, EventKind::nccl_warning);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0]->group_rank, GroupRank{1});
  EXPECT_EQ(warnings[0]->peer_group_rank, GroupRank{0});
}

TEST(NcclLogEvents, ReadsACudaErrorThatWasNotPassedOn) {
  const Fragment fragment = Read(Line("init.cc:1020 Cuda failure 'out of memory'"));
  const auto warnings = EventsOf(fragment, EventKind::nccl_warning);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0]->As<Warning>().id, "cuda-failure");
  EXPECT_EQ(warnings[0]->As<Warning>().place.file, "init.cc");
  EXPECT_EQ(warnings[0]->As<Warning>().place.line, 1020u);
  EXPECT_EQ(warnings[0]->As<Warning>().role, NcclWarningRole::notice);
}

TEST(NcclLogEvents, AnUnprefixedVersionBelongsToTheOnlySpeaker) {
  const Fragment one = Read("NCCL version 2.27.7+cuda12.9\n" + std::string(kInit));
  ASSERT_EQ(EventsOf(one, EventKind::nccl_version).size(), 1u);
  EXPECT_EQ(EventsOf(one, EventKind::nccl_version)[0]->speaker, 0u);
  EXPECT_EQ(EventsOf(one, EventKind::nccl_version)[0]->As<Version>().number, "2.27.7+cuda12.9");
  EXPECT_EQ(EventsOf(ReadSample("release_2.4_ring.log"), EventKind::nccl_version)[0]->speaker, kNobody);
}

TEST(NcclLogEvents, StandInTheOrderOfTheFile) {
  for (const std::string_view name :
       {"release_2.28_mesh_rank3.log", "release_2.28_peer_died_rank0.log", "one_process_two_gpus.log"}) {
    const Fragment fragment = ReadSample(name);
    EXPECT_TRUE(std::is_sorted(fragment.events.begin(), fragment.events.end(), [](const Event& a, const Event& b) {
      return a.source.offset < b.source.offset;
    })) << name;
  }
}

TEST(NcclLogHostile, AccountsForEveryByteOfEveryCut) {
  for (const std::string_view name :
       {"release_2.30_shrink.log", "mixed_launchers.log", "call_level.log", "document_forms_rank5.log"}) {
    const std::string text = Sample(name);
    for (size_t length = 0; length <= text.size(); ++length) Read(std::string_view(text).substr(0, length));
  }
}

TEST(NcclLogHostile, AHugeCommunicatorCostsNoMemory) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += Line("ncclCommInitRank comm 0x" + std::to_string(i + 1) +
                 " rank 3 nranks 2147483647 cudaDev 3 nvmlDev 3 busId c8 commId 0x" + std::to_string(i + 1) +
                 " - Init START");
  const Fragment fragment = Read(text);
  ASSERT_EQ(fragment.groups.size(), 100u);
  EXPECT_EQ(fragment.groups[0].size, 2147483647);
  EXPECT_TRUE(fragment.groups[0].members.empty());
}

TEST(NcclLogHostile, SurvivesBinaryNoise) {
  std::string noise;
  uint64_t state = 42;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    noise += static_cast<char>(state >> 40);
    if (i % 97 == 0) noise += "vm:7:7 [0] NCCL INFO AllReduce: opCount ";
    if (i % 101 == 0) noise += " - Init START\n";
  }
  Read(noise);
  Read(std::string(1 << 20, 'N'));
  Read(std::string(1 << 20, ':') + "NCCL INFO ");
}

TEST(NcclLogHostile, ALineThatStartsLikeACallButIsNoneIsNotUnderstood) {
  const std::string line = Line("AllReduce: opCount zz sendbuff 0x1");
  EXPECT_EQ(Read(line).bytes.not_understood, line.size());
  const std::string init =
      Line("ncclCommInitRank comm 0xa1 rank 9 nranks 8 cudaDev 3 nvmlDev 3 busId c8 commId 0x1 - Init START");
  EXPECT_EQ(Read(init).bytes.not_understood, init.size());
}

TEST(NcclLogImport, TellsDriverNodesAndGpuDirect) {
  const Fragment fragment =
      Read(Line("cudaDriverVersion 12040") + Line("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'") +
           Line("NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'") +
           Line("comm 0x2ad6a510 rank 1 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0"));
  ASSERT_EQ(EventsOf(fragment, EventKind::driver_version).size(), 1u);
  EXPECT_EQ(EventsOf(fragment, EventKind::driver_version)[0]->As<Version>().number, "12040");
  ASSERT_EQ(EventsOf(fragment, EventKind::gpu_direct).size(), 1u) << "sockets never have it";
  EXPECT_EQ(EventsOf(fragment, EventKind::gpu_direct)[0]->As<GpuDirect>().adapter, "mlx5_0");
  EXPECT_EQ(EventsOf(fragment, EventKind::gpu_direct)[0]->As<GpuDirect>().on, false);
  ASSERT_EQ(EventsOf(fragment, EventKind::node_count).size(), 1u);
  EXPECT_EQ(EventsOf(fragment, EventKind::node_count)[0]->As<NodeCount>().nodes, 2);
}

}  // namespace
}  // namespace tacet
