// SPDX-License-Identifier: Apache-2.0
#include "evidence/ras/ras_parse.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "evidence/format.h"

namespace tacet {

extern const Format kRasFormat;

namespace {

std::string Sample(const std::string& name) {
  std::ifstream in(TACET_SOURCE_DIR "/src/evidence/ras/samples/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

Fragment Read(std::string_view bytes) {
  Fragment out;
  kRasFormat.read({"ras.txt", bytes, false}, out);
  EXPECT_EQ(out.bytes.understood + out.bytes.ignored + out.bytes.not_understood, bytes.size());
  EXPECT_EQ(out.bytes.total, bytes.size());
  return out;
}

Recognition Recognise(std::string_view bytes) { return kRasFormat.recognise(bytes.substr(0, kPrefixBytes), "x"); }

const LaunchCounts* Find(const Fragment& fragment, uint64_t comm, int rank) {
  for (const LaunchCounts& counts : fragment.launch_counts)
    if (counts.comm == comm && counts.group_rank.value == rank) return &counts;
  return nullptr;
}

int64_t Count(const LaunchCounts& counts, OpKind kind) { return counts.counts[static_cast<size_t>(kind)]; }

std::vector<const Event*> EventsOf(const Fragment& fragment, EventKind kind) {
  std::vector<const Event*> found;
  for (const Event& event : fragment.events)
    if (event.kind == kind) found.push_back(&event);
  return found;
}

bool HasNote(const Fragment& fragment, std::string_view code) {
  for (const Diagnostic& diagnostic : fragment.diagnostics)
    if (diagnostic.code == code) return true;
  return false;
}

TEST(RasRecognition, KnowsEverySampleByContent) {
  for (const auto& entry : std::filesystem::directory_iterator(TACET_SOURCE_DIR "/src/evidence/ras/samples"))
    EXPECT_EQ(Recognise(Sample(entry.path().filename())), Recognition::yes) << entry.path();
}

TEST(RasRecognition, KnowsAnAnswerWithALauncherPrefixOnEachLine) {
  EXPECT_EQ(Recognise("3: NCCL version 2.27.7 compiled with CUDA 12.9\n3: \n3: Job summary\n3: ===========\n"),
            Recognition::yes);
}

TEST(RasRecognition, LeavesNcclLogsAndForeignJsonAlone) {
  EXPECT_EQ(
      Recognise("vm:410:410 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\nvm:410:410 [0] NCCL INFO RAS client listening "
                "socket at ::1<28028>\n"),
      Recognition::no);
  EXPECT_EQ(Recognise("NCCL version 2.21.5+cuda12.4\n"), Recognition::no);
  EXPECT_EQ(Recognise("{\"header\":{\"id\":\"0x1\",\"rank\":0,\"n_ranks\":4},\"coll_perf\":{}}\n"), Recognition::no);
  EXPECT_EQ(Recognise("{\"schemaVersion\": 1, \"traceEvents\": []}"), Recognition::no);
  EXPECT_EQ(Recognise("[2026-11-15 00:13:56] vm:551:551 [0] NCCL INFO Bootstrap: Using eth0\n"), Recognition::no);
  EXPECT_EQ(Recognise("OK\n"), Recognition::no);
  EXPECT_EQ(Recognise(""), Recognition::no);
}

TEST(RasJson, CountsEveryRankOfEveryCommunicator) {
  const Fragment out = Read(Sample("mismatch_2.28.json"));
  EXPECT_EQ(out.launch_counts.size(), 12u);
  EXPECT_EQ(out.groups.size(), 5u);
  const LaunchCounts* late = Find(out, 0xd4e3a8fd0321282d, 1);
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(Count(*late, OpKind::all_reduce), 39);
  EXPECT_EQ(Count(*late, OpKind::broadcast), 0);
  EXPECT_EQ(Count(*late, OpKind::send), -1) << "point-to-point is not counted";
  EXPECT_EQ(late->comm_size, 2);
  EXPECT_EQ(late->pid, 411);
  EXPECT_EQ(late->host, "192.0.2.2");
  EXPECT_EQ(late->device, 0);
  EXPECT_EQ(late->status, "RUNNING");
  EXPECT_EQ(late->source.line, 189u) << "the line with the rank, not the one that opens its record";
  EXPECT_GT(late->lines[static_cast<size_t>(OpKind::all_reduce)], late->source.line);
  EXPECT_EQ(late->wall_ns, ParseRasTime("2026-11-15 00:38:05"));
  EXPECT_EQ(out.bytes.not_understood, 0u);
  EXPECT_EQ(out.bytes.ignored, std::string("SERVER PROTOCOL 2\nOK\n").size());
}

TEST(RasJson, TakesRanksFromTheCommunicatorThatHoldsEveryProcess) {
  const Fragment out = Read(Sample("mismatch_2.28.json"));
  ASSERT_EQ(out.speakers.size(), 4u);
  for (const Speaker& speaker : out.speakers) {
    EXPECT_EQ(speaker.rank.value, speaker.pid - 410);
    EXPECT_EQ(speaker.rank_certainty, Certainty::stated);
    EXPECT_EQ(speaker.world_size, 4);
  }
  for (const Group& group : out.groups) {
    if (group.comm_id == 0xea8eca2d68a82528) {
      EXPECT_EQ(group.members, (std::vector<Rank>{{1}, {3}}));
    }
    EXPECT_EQ(group.members.size(), static_cast<size_t>(group.size));
  }
}

TEST(RasJson, NamesNoRankWhereEveryCommunicatorIsAPart) {
  std::string bytes = Sample("mismatch_2.28.json");
  const size_t world = bytes.find("    {\n      \"hash\": \"0x528d");
  const size_t next = bytes.find("    {\n      \"hash\": \"0xd4e3");
  ASSERT_LT(world, next);
  bytes.erase(world, next - world);
  const Fragment out = Read(bytes);
  EXPECT_EQ(out.speakers.size(), 4u);
  for (const Speaker& speaker : out.speakers) EXPECT_FALSE(speaker.rank.known());
  for (const Group& group : out.groups) EXPECT_TRUE(group.members.empty());
}

TEST(RasJson, TellsDeadSilentAndDepartedRanksApart) {
  const Fragment out = Read(Sample("missing_2.29.json"));
  constexpr uint64_t kComm = 0xae94423cfbb2ef4a;
  const auto silent = EventsOf(out, EventKind::ras_rank_unresponsive);
  ASSERT_EQ(silent.size(), 1u);
  EXPECT_EQ(silent[0]->group_rank.value, 1);
  EXPECT_EQ(silent[0]->comm, kComm);
  EXPECT_EQ(silent[0]->pid, 1524345);
  EXPECT_EQ(out.speakers[silent[0]->speaker].host, "172.16.64.245");
  const auto dead = EventsOf(out, EventKind::ras_rank_dead);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0]->group_rank.value, 2);
  EXPECT_EQ(out.speakers[dead[0]->speaker].host, "172.16.64.246") << "two hosts may have the same pid";
  const auto missing = EventsOf(out, EventKind::ras_rank_missing);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0]->group_rank.value, 3);
  EXPECT_FALSE(Find(out, kComm, 1)->responsive);
  EXPECT_FALSE(Find(out, kComm, 1)->dead);
  EXPECT_TRUE(Find(out, kComm, 2)->dead);
  EXPECT_TRUE(Find(out, kComm, 3)->responsive) << "it answers, and knows no such communicator";
  EXPECT_EQ(Find(out, kComm, 3)->status, "NOCOMM");
  EXPECT_EQ(Count(*Find(out, kComm, 2), OpKind::all_reduce), -1);
  const auto errors = EventsOf(out, EventKind::nccl_error);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]->As<NcclError>().code, 6);
  EXPECT_EQ(errors[0]->As<NcclError>().result, "Remote process error");
  EXPECT_TRUE(HasNote(out, "ras-timeouts"));
  EXPECT_EQ(out.speakers.size(), 4u);
  EXPECT_EQ(out.speakers[2].rank.value, 2)
      << "missing ranks count when the communicator is measured against the processes";
}

TEST(RasJson, SetsTheLastAnswerAgainstTheOneBefore) {
  const Fragment out = Read(Sample("polled_twice_2.30.json"));
  ASSERT_EQ(out.launch_counts.size(), 2u);
  EXPECT_EQ(out.launch_counts[0].moved, 0);
  EXPECT_EQ(out.launch_counts[1].moved, 1);
  EXPECT_EQ(Count(out.launch_counts[1], OpKind::all_reduce), 13);
  EXPECT_EQ(out.launch_counts[1].wall_ns, ParseRasTime("2026-02-01 00:00:10"));
  EXPECT_TRUE(HasNote(out, "ras-earlier-answers"));
  EXPECT_EQ(EventsOf(out, EventKind::nccl_version).size(), 1u);
  EXPECT_EQ(Read(Sample("mismatch_2.28.json")).launch_counts[0].moved, -1);
}

TEST(RasJson, KeepsWholeRanksOfACutAnswer) {
  const std::string bytes = Sample("mismatch_2.28.json");
  const size_t cut = bytes.find("\"pid\": 413");
  const Fragment out = Read(std::string_view(bytes).substr(0, cut));
  EXPECT_EQ(out.launch_counts.size(), 5u);
  EXPECT_EQ(out.launch_counts.back().comm, 0x528dec68a61130fdu);
  EXPECT_EQ(out.launch_counts.back().comm_size, 4);
  EXPECT_TRUE(HasNote(out, "truncated"));
  EXPECT_GT(out.bytes.not_understood, 0u);
}

TEST(RasJson, ReadsTheAnswerAfterACutOne) {
  const std::string bytes = Sample("polled_twice_2.30.json");
  const std::string cut = bytes.substr(0, bytes.find("\"pid\": 71")) + "\nOK\n" + bytes.substr(bytes.rfind("OK\n") + 3);
  const Fragment out = Read(cut);
  ASSERT_EQ(out.launch_counts.size(), 2u);
  EXPECT_EQ(Count(out.launch_counts[1], OpKind::all_reduce), 13);
}

TEST(RasJson, CountsForeignJsonAsNotUnderstood) {
  const Fragment out = Read("{\"a\": 1}\n");
  EXPECT_EQ(out.bytes.not_understood, 9u);
  EXPECT_TRUE(out.events.empty());
}

TEST(RasText, ReadsMismatchedCountsByKind) {
  const Fragment out = Read(Sample("mismatch_2.28.txt"));
  EXPECT_EQ(out.launch_counts.size(), 6u);
  const LaunchCounts* late = Find(out, 0xea8eca2d68a82528, 1);
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(Count(*late, OpKind::all_reduce), 12);
  EXPECT_EQ(Count(*late, OpKind::all_gather), -1) << "the text tells only the kinds that differ";
  EXPECT_EQ(late->comm_size, 2) << "from the group table";
  EXPECT_EQ(late->pid, 413);
  EXPECT_EQ(late->source.line, 40u);
  EXPECT_EQ(out.bytes.not_understood, 0u);
  for (const Speaker& speaker : out.speakers) EXPECT_FALSE(speaker.rank.known()) << "communicators of 2 in a job of 4";
  ASSERT_EQ(EventsOf(out, EventKind::nccl_version).size(), 1u);
  EXPECT_EQ(EventsOf(out, EventKind::nccl_version)[0]->As<Version>().number, "2.28.9");
}

TEST(RasText, KeepsTheMajorityThatIsOnlyCounted) {
  const Fragment out = Read(Sample("incomplete_2.24.txt"));
  const LaunchCounts* majority = Find(out, 0xcf264af53edbe986, -1);
  ASSERT_NE(majority, nullptr);
  EXPECT_EQ(majority->ranks, 29);
  EXPECT_EQ(majority->all_kinds, 6650);
  EXPECT_EQ(Count(*majority, OpKind::all_reduce), -1);
  const LaunchCounts* named = Find(out, 0xcf264af53edbe986, 4);
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(named->all_kinds, 6649);
  EXPECT_EQ(named->ranks, 1);
  EXPECT_EQ(named->pid, 483076);
  EXPECT_EQ(out.launch_counts.size(), 4u) << "a group whose members are named is not counted twice";
}

TEST(RasText, TiesTheOneSilentProcessToTheOneMissingRank) {
  const Fragment out = Read(Sample("incomplete_2.24.txt"));
  const LaunchCounts* missing = Find(out, 0xcf264af53edbe986, 21);
  ASSERT_NE(missing, nullptr);
  EXPECT_FALSE(missing->responsive);
  EXPECT_FALSE(missing->dead);
  EXPECT_EQ(missing->pid, 3487984);
  EXPECT_EQ(missing->device, 5);
  const auto silent = EventsOf(out, EventKind::ras_rank_unresponsive);
  ASSERT_EQ(silent.size(), 2u) << "the process, and its rank";
  EXPECT_EQ(silent[0]->speaker, silent[1]->speaker);
  EXPECT_EQ(out.speakers[silent[0]->speaker].rank.value, 21) << "32 ranks, 32 GPUs: the communicator is the job";
  EXPECT_TRUE(EventsOf(out, EventKind::ras_rank_dead).empty());
}

TEST(RasText, ReadsDeadProcessesErrorsAndStatus) {
  const Fragment out = Read(Sample("dead_2.27.txt"));
  constexpr uint64_t kComm = 0x27a079b828ff1a75;
  EXPECT_EQ(out.bytes.not_understood, 0u);
  const auto dead = EventsOf(out, EventKind::ras_rank_dead);
  ASSERT_EQ(dead.size(), 2u);
  EXPECT_EQ(dead[0]->pid, 917);
  EXPECT_EQ(dead[1]->group_rank.value, 14);
  EXPECT_TRUE(Find(out, kComm, 14)->dead);
  EXPECT_EQ(Find(out, kComm, 14)->device, 6) << "the CUDA number, not NVML's";
  const auto errors = EventsOf(out, EventKind::nccl_error);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0]->group_rank.value, 13);
  EXPECT_EQ(errors[0]->As<NcclError>().code, 6);
  EXPECT_EQ(errors[2]->As<NcclError>().result, "System error");
  EXPECT_EQ(Find(out, kComm, 3)->status, "ABORT");
  ASSERT_EQ(EventsOf(out, EventKind::comm_aborted).size(), 1u);
  const auto missing = EventsOf(out, EventKind::ras_rank_missing);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0]->group_rank.value, 5);
  // One rank, two paragraphs.
  EXPECT_EQ(Count(*Find(out, kComm, 2), OpKind::all_gather), 0);
  EXPECT_EQ(Count(*Find(out, kComm, 2), OpKind::all_reduce), 6);
  EXPECT_EQ(Find(out, kComm, 9)->pid, -1);
  EXPECT_EQ(Count(*Find(out, kComm, 9), OpKind::all_reduce), 6);
  EXPECT_EQ(Find(out, kComm, 2)->comm_size, 16);
}

TEST(RasText, CountsProcessesThatAreNotNamed) {
  const Fragment out = Read(
      "NCCL version 2.27.7 compiled with CUDA 12.9\n\nErrors\n======\n\nDEAD\n  24 job processes are "
      "considered dead (unreachable via the RAS network)\n\n");
  const auto dead = EventsOf(out, EventKind::ras_rank_dead);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0]->As<RasReport>().times, 24);
  EXPECT_EQ(dead[0]->pid, -1);
  EXPECT_EQ(dead[0]->speaker, kNobody);
}

TEST(RasText, TellsWhatTheServerRefused) {
  const Fragment out = Read(Sample("refused_2.26.txt"));
  EXPECT_TRUE(HasNote(out, "ras-refused"));
  EXPECT_TRUE(HasNote(out, "ras-no-communicators"));
  EXPECT_TRUE(out.launch_counts.empty());
}

TEST(RasText, ReadsLinesBehindLauncherPrefixes) {
  const std::string bytes = Sample("mismatch_2.28.txt");
  for (const std::string prefix : {"3: ", "[1,3]<stdout>:", "[pod/trainer-3/main] ", "trainer-3 ", "\x1b[32m"}) {
    std::string prefixed = prefix;
    for (const char c : bytes) {
      prefixed += c;
      if (c == '\n') prefixed += prefix;
    }
    const Fragment out = Read(prefixed);
    EXPECT_EQ(out.launch_counts.size(), 6u) << prefix;
    EXPECT_EQ(out.bytes.not_understood, 0u) << prefix;
  }
}

TEST(RasText, KeepsTheLastLineWithoutNewline) {
  std::string bytes = Sample("mismatch_2.28.txt");
  while (bytes.ends_with('\n')) bytes.pop_back();
  EXPECT_EQ(Read(bytes).launch_counts.size(), 6u);
}

TEST(RasMonitor, ForgetsASilenceThatEnded) {
  const Fragment out = Read(Sample("monitor_2.29.txt"));
  const auto silent = EventsOf(out, EventKind::ras_rank_unresponsive);
  ASSERT_EQ(silent.size(), 1u);
  EXPECT_EQ(silent[0]->pid, 1524345);
  const auto dead = EventsOf(out, EventKind::ras_rank_dead);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0]->pid, 1524345);
  EXPECT_EQ(dead[0]->wall_ns, ParseRasTime("2025-12-19 13:07:07"));
  EXPECT_EQ(out.bytes.not_understood, 0u);
}

TEST(RasMonitor, ReadsEventsAsJson) {
  const Fragment out = Read(Sample("monitor_2.29.json"));
  const auto dead = EventsOf(out, EventKind::ras_rank_dead);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0]->pid, 1524345);
  EXPECT_EQ(out.speakers[dead[0]->speaker].device, 1);
  const auto silent = EventsOf(out, EventKind::ras_rank_unresponsive);
  ASSERT_EQ(silent.size(), 1u);
  EXPECT_EQ(silent[0]->speaker, kNobody);
  EXPECT_NE(silent[0]->text.find("172.16.64.246"), std::string::npos);
  EXPECT_EQ(out.bytes.not_understood, 0u);
}

TEST(RasTime, ReadsDatesAndRefusesOthers) {
  EXPECT_EQ(ParseRasTime("1970-01-02 00:00:01"), 86'401'000'000'000);
  EXPECT_EQ(ParseRasTime("2024-02-29 12:00:00"), 1'709'208'000'000'000'000);
  EXPECT_EQ(ParseRasTime("2024-13-01 12:00:00"), INT64_MIN);
  EXPECT_EQ(ParseRasTime("2024-02-29T12:00:00"), INT64_MIN);
  EXPECT_EQ(ParseRasTime(""), INT64_MIN);
}

TEST(RasHostile, SurvivesEveryPrefixOfEverySample) {
  for (const auto& entry : std::filesystem::directory_iterator(TACET_SOURCE_DIR "/src/evidence/ras/samples")) {
    const std::string bytes = Sample(entry.path().filename());
    for (size_t cut = 0; cut < bytes.size(); cut += 7) {
      Recognise(std::string_view(bytes).substr(0, cut));
      Read(std::string_view(bytes).substr(0, cut));
    }
  }
}

TEST(RasHostile, BearsNumbersBeyondAllBounds) {
  const Fragment out = Read(
      "{\"nccl_version\":\"9\",\"communicators\":[{\"hash\":\"0xffffffffffffffffff\",\"size\":99999999999,\"ranks\":[{"
      "\"rank\":-7,"
      "\"host\":\"\\u0007\",\"pid\":1e300,\"cuda_dev\":-1e300,\"status\":{\"init_state\":99999999999999999999},"
      "\"collective_counts\":{\"AllReduce\":18446744073709551615,\"Broadcast\":-5,\"\\\"\":1}}],\"missing_ranks\":null}"
      "]}");
  ASSERT_EQ(out.launch_counts.size(), 1u);
  EXPECT_EQ(Count(out.launch_counts[0], OpKind::broadcast), 0);
  EXPECT_EQ(out.launch_counts[0].comm_size, -1);
  Read(
      "#99999999999-0 (zz) MISMATCH\n#0-0 (1) MISMATCH\n Communicator ranks have different AllReduce operation counts\n"
      " 99999999999999999999 ranks have launched up to operation 1\n Rank 1 has launched up to operation x\n");
}

TEST(RasHostile, StaysFastOnManyOpenedBraces) {
  std::string bytes;
  for (int i = 0; i < 200'000; ++i) bytes += "{\"a\":[\n";
  const Fragment out = Read(bytes);
  EXPECT_EQ(out.bytes.not_understood, bytes.size());
}

}  // namespace
}  // namespace tacet
