// SPDX-License-Identifier: Apache-2.0
#include "evidence/black_box/black_box_parse.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "evidence/black_box/black_box_import.h"

namespace tacet {

extern const Format kBlackBoxFormat;

namespace {

std::string Sample(const std::string& name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/black_box/samples/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Fragment Import(const std::string& bytes) {
  Fragment out;
  ImportBlackBox({"x.box", bytes}, out);
  return out;
}

template <typename T>
void Poke(std::string& bytes, uint64_t offset, T value) {
  ASSERT_LE(offset + sizeof value, bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

bool AddsUp(const Fragment& out) {
  return out.bytes.understood + out.bytes.ignored + out.bytes.not_understood == out.bytes.total;
}

bool HasNote(const Fragment& out, const std::string& code) {
  for (const Diagnostic& note : out.diagnostics)
    if (note.code == code) return true;
  return false;
}

const char* const kSamples[] = {"healthy_rank0.box",  "hang_waiting_rank0.box", "hang_stuck_rank1.box",
                                "hang_gpu_rank1.box", "api_v2_rank0.box",       "transfers_rank0.box"};

TEST(BlackBoxRecognise, KnowsItsMagicAndNothingElse) {
  EXPECT_EQ(kBlackBoxFormat.recognise(Sample("healthy_rank0.box"), "anything"), Recognition::yes);
  EXPECT_EQ(kBlackBoxFormat.recognise("TACETBOX", "x"), Recognition::yes);
  EXPECT_EQ(kBlackBoxFormat.recognise("TACETBO", "node01-17.box"), Recognition::no);
  EXPECT_EQ(kBlackBoxFormat.recognise("", "node01-17.box"), Recognition::no);
  EXPECT_EQ(kBlackBoxFormat.recognise("log of TACETBOX", "x"), Recognition::no);
}

TEST(BlackBoxParse, ReadsEverySampleToTheLastByte) {
  for (const char* name : kSamples) {
    const std::string bytes = Sample(name);
    const BlackBox box = ParseBlackBox(bytes);
    EXPECT_EQ(box.trouble, BoxTrouble::none) << name << box.reason;
    EXPECT_TRUE(box.clock.ok());
    EXPECT_EQ(box.torn, 0u) << name;
    EXPECT_FALSE(box.cut);
    const Fragment out = Import(bytes);
    EXPECT_TRUE(AddsUp(out));
    EXPECT_EQ(out.bytes.total, bytes.size());
    EXPECT_EQ(out.bytes.not_understood, 0u);
    ASSERT_EQ(out.speakers.size(), 1u);
    EXPECT_EQ(out.speakers[0].host, "node01");
    EXPECT_EQ(out.speakers[0].rank_certainty, Certainty::stated);
    EXPECT_EQ(out.groups.at(0).comm_id, 0xc0ffee1234u);
  }
}

TEST(BlackBoxImport, TellsTheGpuOfTheRank) {
  std::string bytes = Sample(kSamples[0]);
  EXPECT_EQ(Import(bytes).speakers[0].gpu_uuid, "");
  const std::string_view uuid("GPU-a4db5e66\0", 13);
  uuid.copy(bytes.data() + __builtin_offsetof(box::Header, gpu_uuid), uuid.size());
  EXPECT_EQ(Import(bytes).speakers[0].gpu_uuid, "GPU-a4db5e66");
}

TEST(BlackBoxImport, HealthyRankHasAllCallsWithTimes) {
  const Fragment out = Import(Sample("healthy_rank0.box"));
  ASSERT_EQ(out.streams.size(), 1u);
  const CallStream& stream = out.streams[0];
  EXPECT_EQ(stream.source, CallSource::black_box);
  EXPECT_TRUE(stream.from_start);
  EXPECT_TRUE(stream.knows_start && stream.knows_finish);
  ASSERT_EQ(stream.calls.size(), 12u);
  for (size_t i = 0; i < stream.calls.size(); ++i) {
    const Call& call = stream.calls[i];
    EXPECT_EQ(call.seq, i + 1);
    EXPECT_EQ(call.state, CallState::completed);
    EXPECT_LE(call.enter_wall_ns, call.start_wall_ns);
    EXPECT_LE(call.start_wall_ns, call.finish_wall_ns);
    EXPECT_LT(call.finish_wall_ns - call.enter_wall_ns, 10'000'000'000);
    if (i > 0) {
      EXPECT_GE(call.enter_wall_ns, stream.calls[i - 1].enter_wall_ns);
    }
  }
  // all_gather: every rank gives 2048 elements, everybody gets those of both.
  EXPECT_EQ(stream.calls[1].kind, OpKind::all_gather);
  EXPECT_EQ(stream.calls[1].in_elements, 2048);
  EXPECT_EQ(stream.calls[1].out_elements, 4096);
  EXPECT_EQ(stream.calls[2].kind, OpKind::reduce_scatter);
  EXPECT_EQ(stream.calls[2].in_elements, 6144);
  EXPECT_EQ(stream.calls[2].out_elements, 3072);
  EXPECT_EQ(out.measurements.size(), 12u);
  EXPECT_TRUE(out.in_flight.empty());
  ASSERT_EQ(stream.progress.size(), 1u);
  EXPECT_EQ(stream.progress[0].last_completed, 12);
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].kind, EventKind::process_finished);
  EXPECT_TRUE(out.pulses.at(0).ended);
  EXPECT_EQ(out.groups[0].places, (std::vector<GroupPlace>{{{0}, {0}}}));
  EXPECT_EQ(out.groups[0].size, 2);
}

TEST(BlackBoxImport, WaitingRankShowsWhatItWaitsFor) {
  const Fragment out = Import(Sample("hang_waiting_rank0.box"));
  const CallStream& stream = out.streams.at(0);
  EXPECT_EQ(stream.progress.at(0).last_completed, 5);
  EXPECT_GE(stream.progress.at(0).last_enqueued, 6);
  const InFlight* first = nullptr;
  for (const InFlight& flight : out.in_flight)
    if (flight.seq == 6) first = &flight;
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(stream.calls.at(first->call).seq, 6u);
  EXPECT_EQ(stream.calls.at(first->call).state, CallState::started);
  EXPECT_EQ(first->channels, 2);
  EXPECT_EQ(first->channels_started, 2);
  EXPECT_EQ(first->channels_finished, 0);
  EXPECT_TRUE(first->tells_end);
  EXPECT_EQ(first->flows.size(), 4u);
  for (const Flow& flow : first->flows) {
    if (flow.send) {
      EXPECT_EQ(flow.waiting, FlowWait::peer_credit);
    }
  }
  EXPECT_FALSE(out.pulses.at(0).ended);
  EXPECT_TRUE(out.events.empty());
}

TEST(BlackBoxImport, StuckRankHasNothingInFlight) {
  const Fragment out = Import(Sample("hang_stuck_rank1.box"));
  EXPECT_EQ(out.streams.at(0).calls.size(), 5u);
  EXPECT_TRUE(out.in_flight.empty());
  EXPECT_EQ(out.speakers[0].rank.value, 1);
}

TEST(BlackBoxImport, StalledGpuIsEnqueuedButNotStarted) {
  const Fragment out = Import(Sample("hang_gpu_rank1.box"));
  ASSERT_FALSE(out.in_flight.empty());
  EXPECT_EQ(out.in_flight[0].seq, 6u);
  EXPECT_EQ(out.in_flight[0].channels_started, 0);
  EXPECT_EQ(out.in_flight[0].host, HostStage::away);
  EXPECT_EQ(out.streams.at(0).calls.at(out.in_flight[0].call).state, CallState::enqueued);
}

TEST(BlackBoxImport, OldApiSaysThatItKnowsNoEnd) {
  const Fragment out = Import(Sample("api_v2_rank0.box"));
  EXPECT_FALSE(out.streams.at(0).knows_finish);
  EXPECT_EQ(out.streams.at(0).calls.size(), 12u);
  EXPECT_TRUE(out.measurements.empty());
  for (const InFlight& flight : out.in_flight) EXPECT_FALSE(flight.tells_end);
}

TEST(BlackBoxImport, TransfersNameTheirPeer) {
  const Fragment out = Import(Sample("transfers_rank0.box"));
  for (const Call& call : out.streams.at(0).calls) {
    EXPECT_TRUE(call.has(kPointToPoint));
    EXPECT_EQ(call.peer.value, 1);
  }
}

TEST(BlackBoxParse, SurvivesEveryCut) {
  const std::string bytes = Sample("hang_waiting_rank0.box");
  for (size_t cut = 0; cut < bytes.size(); cut += cut < 5000 ? 13 : 911) {
    const std::string part = bytes.substr(0, cut);
    const Fragment out = Import(part);
    EXPECT_TRUE(AddsUp(out)) << cut;
    EXPECT_EQ(out.bytes.total, cut);
    if (cut >= sizeof(box::Header)) {
      EXPECT_TRUE(HasNote(out, "truncated"));
      EXPECT_FALSE(out.streams.at(0).from_start);
    } else {
      EXPECT_EQ(out.bytes.not_understood, cut);
    }
  }
}

TEST(BlackBoxParse, SaysWhatIsWrongWithAHeader) {
  const std::string good = Sample("healthy_rank0.box");
  const auto trouble_with = [&](auto poke) {
    std::string bytes = good;
    poke(bytes);
    const Fragment out = Import(bytes);
    EXPECT_TRUE(AddsUp(out));
    EXPECT_EQ(out.bytes.understood, 0u);
    EXPECT_EQ(out.diagnostics.size(), 1u);
    return ParseBlackBox(bytes).trouble;
  };
  using box::Header;
  EXPECT_EQ(trouble_with([](std::string& b) { Poke(b, offsetof(Header, version), 2u); }), BoxTrouble::other_version);
  EXPECT_EQ(trouble_with([](std::string& b) { Poke(b, offsetof(Header, byte_order), 0x04030201u); }),
            BoxTrouble::other_byte_order);
  EXPECT_EQ(trouble_with([](std::string& b) { Poke(b, offsetof(Header, ready), 0u); }), BoxTrouble::not_ready);
  EXPECT_EQ(trouble_with([](std::string& b) { Poke(b, 0, 'X'); }), BoxTrouble::not_a_box);
  // Made, and not written yet.
  EXPECT_EQ(trouble_with([](std::string& b) { b.assign(b.size(), '\0'); }), BoxTrouble::not_ready);
  for (const size_t table : {offsetof(Header, comms), offsetof(Header, ops), offsetof(Header, ring)}) {
    EXPECT_EQ(trouble_with([&](std::string& b) { Poke(b, table, uint64_t{0}); }), BoxTrouble::bad_layout);
    EXPECT_EQ(trouble_with([&](std::string& b) { Poke(b, table, ~uint64_t{7}); }), BoxTrouble::bad_layout);
    EXPECT_EQ(trouble_with([&](std::string& b) { Poke(b, table + 8, 0xffffffffu); }), BoxTrouble::bad_layout);
    EXPECT_EQ(trouble_with([&](std::string& b) { Poke(b, table + 8, 0x80000000u); }), BoxTrouble::bad_layout);
    EXPECT_EQ(trouble_with([&](std::string& b) { Poke(b, table + 8, 0u); }), BoxTrouble::bad_layout);
    EXPECT_EQ(trouble_with([&](std::string& b) { Poke(b, table + 12, 8u); }), BoxTrouble::bad_layout);
  }
}

TEST(BlackBoxParse, RecordWithAnyChangedByteIsTorn) {
  const std::string good = Sample("healthy_rank0.box");
  const box::Header header = ParseBlackBox(good).header;
  for (uint64_t byte = 0; byte < sizeof(box::Record); ++byte) {
    std::string bytes = good;
    bytes[header.ring.offset + byte] = static_cast<char>(bytes[header.ring.offset + byte] ^ 0x10);
    const BlackBox box = ParseBlackBox(bytes);
    EXPECT_EQ(box.torn, 1u) << byte;
    EXPECT_EQ(box.ops.size(), 11u) << byte;
    const Fragment out = Import(bytes);
    EXPECT_TRUE(AddsUp(out));
    EXPECT_EQ(out.bytes.not_understood, sizeof(box::Record));
    EXPECT_TRUE(HasNote(out, "torn-records"));
  }
}

TEST(BlackBoxParse, SlotThatMixesTwoOperationsIsTorn) {
  std::string bytes = Sample("hang_waiting_rank0.box");
  const BlackBox good = ParseBlackBox(bytes);
  const BlackBoxOp* live = nullptr;
  for (const BlackBoxOp& op : good.ops)
    if (op.in_table()) live = &op;
  ASSERT_NE(live, nullptr);
  Poke(bytes, live->offset + 8, live->op.serial + good.header.ops.count);  // the next lap's operation
  const BlackBox mixed = ParseBlackBox(bytes);
  EXPECT_EQ(mixed.torn, 1u);
  EXPECT_EQ(mixed.ops.size(), good.ops.size() - 1);
}

TEST(BlackBoxParse, NonsenseClockGivesNoTimesRatherThanWrongOnes) {
  for (const uint64_t hz : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    std::string bytes = Sample("healthy_rank0.box");
    Poke(bytes, offsetof(box::Header, tick_hz), hz);
    Poke(bytes, offsetof(box::Header, latest), ParseBlackBox(bytes).header.first);
    Poke(bytes, offsetof(box::Header, latest) + sizeof(box::ClockPair), ParseBlackBox(bytes).header.first);
    const Fragment out = Import(bytes);
    EXPECT_TRUE(HasNote(out, "no-clock")) << hz;
    for (const Call& call : out.streams.at(0).calls) EXPECT_EQ(call.enter_wall_ns, kNoTime);
  }
}

TEST(BlackBoxImport, HostileSizesCostNoMemory) {
  std::string bytes = Sample("healthy_rank0.box");
  const BlackBox good = ParseBlackBox(bytes);
  Poke(bytes, good.comms.at(0).offset + offsetof(box::Comm, size), INT32_MAX);
  Poke(bytes, good.comms.at(0).offset + offsetof(box::Comm, name), uint64_t{0x1b5b1b5b1b5b1b5b});
  std::memset(bytes.data() + good.comms.at(0).offset + offsetof(box::Comm, name), '\x1b', sizeof(box::Comm::name));
  const Fragment out = Import(bytes);
  EXPECT_TRUE(out.groups.at(0).members.empty()) << "only the assembly writes members out";
  EXPECT_EQ(out.groups.at(0).description.find('\x1b'), std::string::npos);
}

TEST(BoxClock, GoesThroughTheLatestPairAtTheMeasuredRate) {
  box::Header header{};
  header.tick_hz = 1'000'000'000;
  header.first = {1000, 0, 5'000'000'000};
  header.clock_updates = 1;
  header.latest[1] = {1000 + 3'000'000'000, 2'000'000'000, 7'000'000'000};  // really 1.5 GHz
  const BoxClock clock(header);
  EXPECT_EQ(clock.WallNs(1000 + 3'000'000'000), 7'000'000'000);
  EXPECT_EQ(clock.WallNs(1000), 5'000'000'000);
  EXPECT_EQ(clock.WallNs(0), kNoBoxTime);
  EXPECT_EQ(clock.DurationNs(1'500'000'000), 1'000'000'000);
}

TEST(BoxOp, GpuTimesOfAnEarlierKernelAreNotBelieved) {
  box::Op op{};
  op.gpu_start_ns = 5'000'000;
  op.gpu_finish_ns = 25'000'000;
  EXPECT_TRUE(box::HasGpuTimes(op, 21'000'000));
  EXPECT_TRUE(box::HasGpuTimes(op, -1)) << "the host's times are not known";
  EXPECT_FALSE(box::HasGpuTimes(op, 1'200'000));
  op.gpu_start_ns = 0;
  EXPECT_FALSE(box::HasGpuTimes(op, 21'000'000));
}

}  // namespace
}  // namespace tacet
