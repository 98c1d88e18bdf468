// SPDX-License-Identifier: Apache-2.0
#include "evidence/inspector/inspector_parse.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "evidence/format.h"

namespace tacet {

extern const Format kInspectorFormat;

namespace {

constexpr char kSamples[] = TACET_SOURCE_DIR "/src/evidence/inspector/samples/";

std::string Sample(const std::string& name) {
  std::ifstream in(kSamples + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

Fragment Read(std::string_view bytes) {
  Fragment out;
  kInspectorFormat.read({"node-pid1.log", bytes, false}, out);
  EXPECT_EQ(out.bytes.total, bytes.size());
  EXPECT_EQ(out.bytes.understood + out.bytes.ignored + out.bytes.not_understood, bytes.size());
  return out;
}

Recognition Recognise(std::string_view bytes) {
  return kInspectorFormat.recognise(bytes.substr(0, kPrefixBytes), "x.log");
}

bool HasNote(const Fragment& fragment, std::string_view code) {
  for (const Diagnostic& diagnostic : fragment.diagnostics)
    if (diagnostic.code == code) return true;
  return false;
}

TEST(InspectorRecognition, KnowsEverySampleByContent) {
  for (const auto& entry : std::filesystem::directory_iterator(kSamples))
    EXPECT_EQ(Recognise(Sample(entry.path().filename())), Recognition::yes) << entry.path();
}

TEST(InspectorRecognition, LeavesOtherJsonAlone) {
  EXPECT_EQ(Recognise("{\"header\":{\"title\":\"x\"},\"rows\":[]}\n"), Recognition::no);
  EXPECT_EQ(Recognise("{\"nccl_version\": \"2.29.1\", \"communicators\": []}\n"), Recognition::no);
  EXPECT_EQ(Recognise("{\"version\": \"2.10\", \"entries\": []}"), Recognition::no);
  EXPECT_EQ(Recognise("{\"schemaVersion\": 1, \"traceEvents\": ["), Recognition::no);
  EXPECT_EQ(Recognise("nccl_bus_bandwidth_gbs{version=\"v5.1\",slurm_job_id=\"1\"} 34\n"), Recognition::no);
  EXPECT_EQ(Recognise("host:1:1 [0] NCCL INFO {\"header\"\n"), Recognition::no);
  EXPECT_EQ(Recognise(""), Recognition::no);
}

TEST(InspectorParse, ReadsAVerboseRecord) {
  const Fragment out = Read(Sample("vm-pid577_verbose.log"));
  ASSERT_EQ(out.measurements.size(), 45u);
  const Measurement& first = out.measurements[0];
  EXPECT_GT(first.comm, 0u);
  EXPECT_EQ(first.source.line, 1u);
  EXPECT_EQ(first.op, OpKind::all_reduce);
  for (const Measurement& measured : out.measurements) {
    EXPECT_GT(measured.duration_ns, 0);
    EXPECT_GE(measured.finish_wall_ns, measured.start_wall_ns);
    EXPECT_GT(measured.enter_wall_ns, 1'794'000'000'000'000'000);
    EXPECT_FALSE(measured.host_timed);
  }
  EXPECT_EQ(out.bytes.understood, out.bytes.total);
}

TEST(InspectorParse, TakesTheFirstStartAndTheLastStopOfAllChannels) {
  InspectorRecord record;
  const std::string line =
      R"({"header":{"id":"0x1","rank":0,"n_ranks":2},"coll_perf":{"coll":"AllReduce","event_trace_ts":{"coll_start_ts":10,)"
      R"("coll_stop_ts":99,"kernel_events":[{"channel_id":0,"kernel_start_ts":30,"kernel_stop_ts":50,"kernel_record_ts":49},)"
      R"({"channel_id":1,"kernel_start_ts":20,"kernel_stop_ts":40,"kernel_record_ts":49}]}}})";
  ASSERT_EQ(ParseInspectorLine(line, &record), InspectorLine::record);
  EXPECT_EQ(record.enter_us, 10);
  EXPECT_EQ(record.start_us, 20);
  EXPECT_EQ(record.finish_us, 50);
}

TEST(InspectorParse, ReadsRecordsWithoutNameAndTimingSource) {
  const Fragment out = Read(Sample("node01-pid1639453_2.28.log"));
  ASSERT_EQ(out.measurements.size(), 2u);
  const Measurement& first = out.measurements[0];
  EXPECT_EQ(first.op, OpKind::all_reduce);
  EXPECT_EQ(first.seq, 1407);
  EXPECT_EQ(first.bytes, 17179869184);
  EXPECT_EQ(first.duration_ns, 61'974'000);
  EXPECT_DOUBLE_EQ(first.bus_gbs, 485.119099);
  EXPECT_EQ(first.comm, 0x7f8c496ae9f661u);
  EXPECT_EQ(first.comm_size, 8);
  EXPECT_EQ(first.group_rank.value, 2);
  EXPECT_EQ(first.start_wall_ns, kNoTime) << "no trace, no time";
  EXPECT_EQ(first.enter_wall_ns, kNoTime);
  EXPECT_FALSE(first.host_timed);
  EXPECT_EQ(out.measurements[1].op, OpKind::reduce_scatter);
}

TEST(InspectorParse, ReadsPointToPointAndSkipsEmptyChannels) {
  const Fragment out = Read(Sample("node01-pid71_2.30.log"));
  ASSERT_EQ(out.measurements.size(), 4u);
  const Measurement& send = out.measurements[2];
  EXPECT_EQ(send.op, OpKind::send);
  EXPECT_EQ(send.peer.value, 0);
  EXPECT_EQ(send.seq, 0);
  EXPECT_EQ(send.bytes, 8192);
  EXPECT_EQ(send.enter_wall_ns, 1'752'867'229'235'059'000);
  EXPECT_EQ(send.start_wall_ns, 1'752'867'229'235'181'000) << "channel 0 was not used and holds zeros";
  EXPECT_EQ(send.finish_wall_ns, 1'752'867'229'275'811'000);
  EXPECT_EQ(out.measurements[3].op, OpKind::recv);
  EXPECT_TRUE(out.measurements[3].host_timed);
  EXPECT_TRUE(out.measurements[1].host_timed);
  EXPECT_FALSE(out.measurements[0].host_timed);
}

TEST(InspectorParse, TellsOfDroppedRecordsAndReadsOnThroughLaterFormats) {
  const Fragment out = Read(Sample("node02-pid72_v4.3.log"));
  EXPECT_EQ(out.measurements.size(), 2u);
  EXPECT_TRUE(HasNote(out, "records-dropped"));
  EXPECT_EQ(out.bytes.understood, out.bytes.total);
  EXPECT_FALSE(HasNote(Read(Sample("node01-pid71_2.30.log")), "records-dropped"));
}

TEST(InspectorImport, AssumesTheRankInTheLargestCommunicator) {
  const Fragment out = Read(Sample("vm-pid577_verbose.log"));
  ASSERT_EQ(out.speakers.size(), 1u);
  EXPECT_EQ(out.speakers[0].host, "vm");
  EXPECT_EQ(out.speakers[0].pid, 577);
  EXPECT_EQ(out.speakers[0].rank.value, 0);
  EXPECT_EQ(out.speakers[0].rank_certainty, Certainty::assumed) << "a process cannot know how large the job is";
  EXPECT_EQ(out.groups.size(), 3u);
  for (const Group& group : out.groups) EXPECT_EQ(group.description, "") << "unknown is no name";
}

TEST(InspectorImport, StatesTheRankInTheDefaultGroup) {
  const Fragment out = Read(Sample("node01-pid71_2.30.log"));
  ASSERT_EQ(out.speakers.size(), 1u);
  EXPECT_EQ(out.speakers[0].rank.value, 9);
  EXPECT_EQ(out.speakers[0].rank_certainty, Certainty::stated);
  EXPECT_EQ(out.speakers[0].world_size, 16);
  ASSERT_EQ(out.groups.size(), 3u);
  EXPECT_EQ(out.groups[1].description, "mesh_tp");
  EXPECT_EQ(out.groups[1].size, 2);
}

TEST(InspectorImport, StatesRanksWhereJoinedFilesHoldEveryMember) {
  const std::string one = Sample("vm-pid1896_cut.log");
  std::string both = one.substr(0, one.rfind('\n') + 1), other = both;
  for (size_t at = 0; (at = other.find("\"n_ranks\":4", at)) != std::string::npos; ++at)
    other.replace(at, 11, "\"n_ranks\":2");
  both = other;
  for (size_t at = 0; (at = other.find("\"rank\":0", at)) != std::string::npos; ++at)
    other.replace(at, 8, "\"rank\":1");
  for (size_t at = 0; (at = other.find("\"pid\":1896", at)) != std::string::npos; ++at)
    other.replace(at, 10, "\"pid\":1897");
  const Fragment out = Read(both + other);
  ASSERT_EQ(out.speakers.size(), 2u);
  EXPECT_EQ(out.speakers[1].rank.value, 1);
  EXPECT_EQ(out.speakers[1].rank_certainty, Certainty::stated);
  EXPECT_EQ(out.measurements.back().speaker, 1u);
}

TEST(InspectorImport, NamesNoRankWhereTheLargestCommunicatorsDisagree) {
  const Fragment out = Read(
      "{\"header\":{\"id\":\"0x1\",\"rank\":0,\"n_ranks\":2},\"metadata\":{\"hostname\":\"a\",\"pid\":1},\"coll_perf\":"
      "{}}\n"
      "{\"header\":{\"id\":\"0x2\",\"rank\":1,\"n_ranks\":2},\"metadata\":{\"hostname\":\"a\",\"pid\":1},\"coll_perf\":"
      "{}}\n");
  ASSERT_EQ(out.speakers.size(), 1u);
  EXPECT_FALSE(out.speakers[0].rank.known());
}

TEST(InspectorImport, ToleratesACutLastLine) {
  const std::string bytes = Sample("vm-pid1896_cut.log");
  const Fragment out = Read(bytes);
  EXPECT_EQ(out.measurements.size(), 3u);
  EXPECT_TRUE(HasNote(out, "truncated"));
  EXPECT_EQ(out.bytes.not_understood, bytes.size() - bytes.rfind('\n') - 1);
}

TEST(InspectorImport, KeepsTheLastLineWithoutNewline) {
  std::string bytes = Sample("node01-pid71_2.30.log");
  bytes.pop_back();
  EXPECT_EQ(Read(bytes).measurements.size(), 4u);
}

TEST(InspectorImport, CountsForeignLinesAsNotUnderstood) {
  const std::string line = Sample("node01-pid1639453_2.28.log");
  const Fragment out = Read("hello\n\n" + line + "{\"a\":1}\n[]\n");
  EXPECT_EQ(out.bytes.understood, line.size());
  EXPECT_EQ(out.bytes.ignored, 1u);
  EXPECT_EQ(out.bytes.not_understood, 6u + 8u + 3u);
  EXPECT_TRUE(HasNote(out, "not-understood"));
}

TEST(InspectorImport, BelievesNoLengthBeyondWhatTheHostSaw) {
  const auto read = [](int exec_us) {
    return Read(R"({"header":{"id":"0x1","rank":0,"n_ranks":2},"coll_perf":{"coll":"AllReduce","coll_sn":3,)"
                R"("coll_msg_size_bytes":1048576,"coll_exec_time_us":)" +
                std::to_string(exec_us) +
                R"(,"coll_timing_source":"kernel_gpu","coll_busbw_gbs":0.1,"event_trace_ts":{"coll_start_ts":1000000,)"
                R"("coll_stop_ts":1000030,"kernel_events":[{"channel_id":0,"kernel_start_ts":1000100,)"
                R"("kernel_stop_ts":1001100,"kernel_record_ts":1001100}]}}})");
  };
  const Fragment fits = read(1050);
  ASSERT_EQ(fits.measurements.size(), 1u);
  EXPECT_EQ(fits.measurements[0].duration_ns, 1'050'000);
  EXPECT_FALSE(fits.measurements[0].host_timed);
  const Fragment stale = read(20'000);
  ASSERT_EQ(stale.measurements.size(), 1u);
  EXPECT_EQ(stale.measurements[0].duration_ns, 1'000'000);
  EXPECT_TRUE(stale.measurements[0].host_timed);
  EXPECT_DOUBLE_EQ(stale.measurements[0].bus_gbs, 2.0);
}

TEST(InspectorHostile, SurvivesEveryPrefixOfEverySample) {
  for (const auto& entry : std::filesystem::directory_iterator(kSamples)) {
    const std::string bytes = Sample(entry.path().filename());
    for (size_t cut = 0; cut < bytes.size(); cut += 97) {
      Recognise(std::string_view(bytes).substr(0, cut));
      Read(std::string_view(bytes).substr(0, cut));
    }
  }
}

TEST(InspectorHostile, BearsNumbersBeyondAllBounds) {
  const Fragment out = Read(
      R"({"header":{"id":"xyz","rank":-5,"n_ranks":99999999999},"metadata":{"hostname":null,"pid":-1e99},"coll_perf":{"coll":"\u0000",)"
      R"("coll_sn":NaN,"coll_msg_size_bytes":1e99,"coll_exec_time_us":1e300,"coll_busbw_gbs":NaN,"event_trace_ts":{)"
      R"("coll_start_ts":9223372036854775807,"kernel_events":[{"kernel_start_ts":9223372036854775807,"kernel_stop_ts":-1}]}}})");
  ASSERT_EQ(out.measurements.size(), 1u);
  EXPECT_EQ(out.measurements[0].duration_ns, -1);
  EXPECT_EQ(out.measurements[0].bus_gbs, -1);
  EXPECT_EQ(out.measurements[0].start_wall_ns, kNoTime);
  EXPECT_EQ(out.measurements[0].finish_wall_ns, kNoTime);
  EXPECT_EQ(out.measurements[0].enter_wall_ns, kNoTime);
  EXPECT_EQ(out.measurements[0].op, OpKind::unknown);
  EXPECT_FALSE(out.speakers[0].rank.known());
}

}  // namespace
}  // namespace tacet
