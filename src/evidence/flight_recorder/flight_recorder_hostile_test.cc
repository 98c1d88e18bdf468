// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>

#include "evidence/flight_recorder/flight_recorder_test_dump.h"

namespace tacet {
namespace {

using namespace pickle;

size_t CallCount(const Fragment& fragment) { return fragment.streams.empty() ? 0 : fragment.streams[0].calls.size(); }

std::string Repeat(std::string_view part, size_t count) {
  std::string out;
  out.reserve(part.size() * count);
  while (count-- > 0) out += part;
  return out;
}

// Reads, checks the accounting, and gives the only error there should be.
const Diagnostic* RefusedWith(const Fragment& fragment, const std::string& bytes, std::string_view code) {
  EXPECT_TRUE(AddsUp(fragment, bytes.size()));
  return FindDiagnostic(fragment, code);
}

TEST(FlightRecorderHostile, RefusesPicklesThatImportOrCall) {
  const std::string tail = Text("version") + Text("2.10");
  const std::pair<std::string, const char*> attacks[] = {
      {"cos\nsystem\n(S'id'\ntR.", "GLOBAL"},
      {"\x80\x02"
       "cos\nsystem\n",
       "GLOBAL"},
      {"\x80\x04" + Text("os") + Text("system") + "\x93", "STACK_GLOBAL"},
      {"\x80\x02}(" + tail + Text("x") + ")R", "REDUCE"},
      {"\x80\x02}(" + tail + Text("x") + "}b", "BUILD"},
      {"\x80\x02}(" + tail + "Pid\n", "PERSID"},
      {"\x80\x02}(" + tail + Int(1) + "Q", "BINPERSID"},
      {"\x80\x02(ios\nsystem\n", "INST"},
      {"\x80\x02(" + Text("a") + "o", "OBJ"},
      {"\x80\x02}" + Text("a") + "\x81", "NEWOBJ"},
      {"\x80\x04}" + Text("a") + "\x92", "NEWOBJ_EX"},
      {"\x80\x02\x82\x01", "EXT1"},
  };
  for (const auto& [bytes, opcode] : attacks) {
    const Fragment fragment = ReadFlight(bytes);
    const Diagnostic* refused = RefusedWith(fragment, bytes, "pickle-refused");
    ASSERT_NE(refused, nullptr) << opcode;
    EXPECT_EQ(refused->severity, DiagnosticSeverity::error);
    EXPECT_NE(refused->message.find(opcode), std::string::npos) << refused->message;
    EXPECT_NE(refused->message.find("may be malicious"), std::string::npos);
    EXPECT_NE(refused->message.find("offset " + std::to_string(refused->source.offset)), std::string::npos);
    EXPECT_TRUE(fragment.streams.empty());
    EXPECT_TRUE(fragment.speakers.empty());
    EXPECT_EQ(fragment.bytes.not_understood, bytes.size());
  }
}

TEST(FlightRecorderHostile, KeepsNothingOfAnAttackThatBeginsLikeADump) {
  std::string bytes = WriteDump({EntryText{}, EntryText{}});
  bytes.insert(bytes.size() - 2, "cos\nsystem\n");
  const Fragment fragment = ReadFlight(bytes);
  ASSERT_NE(RefusedWith(fragment, bytes, "pickle-refused"), nullptr);
  EXPECT_EQ(FindDiagnostic(fragment, "pickle-refused")->source.offset, bytes.size() - 13);
  EXPECT_TRUE(fragment.streams.empty());
  EXPECT_TRUE(fragment.groups.empty());
}

TEST(FlightRecorderHostile, NamesAnyOtherOpcodeAndItsOffsetAndKeepsWhatCameBefore) {
  const std::string whole = WriteDump({EntryText{}, EntryText{}});
  for (const auto& [opcode, name] : {std::pair<char, const char*>{'0', "POP"}, {'d', "DICT"}, {'\xff', "unknown"}}) {
    std::string bytes = whole;
    bytes.insert(bytes.size() - 3, 1, opcode);
    const Fragment fragment = ReadFlight(bytes);
    const Diagnostic* problem = RefusedWith(fragment, bytes, "pickle-malformed");
    ASSERT_NE(problem, nullptr) << name;
    EXPECT_NE(problem->message.find(name), std::string::npos) << problem->message;
    EXPECT_EQ(problem->source.offset, whole.size() - 3);
    EXPECT_EQ(CallCount(fragment), 2u);
    EXPECT_GT(fragment.bytes.not_understood, 0u);
  }
}

TEST(FlightRecorderHostile, RefusesOtherProtocols) {
  for (const char version : {0, 1, 6, 127}) {
    std::string bytes = WriteDump({EntryText{}});
    bytes[1] = version;
    EXPECT_NE(RefusedWith(ReadFlight(bytes), bytes, "pickle-malformed"), nullptr) << int(version);
  }
}

TEST(FlightRecorderHostile, TellsForeignFilesFromDumps) {
  for (const std::string& bytes :
       {File(List({})), File(Dict({Of("a", Int(1))})), File(Int(3)), std::string("{}"), std::string("[1]")}) {
    const Fragment fragment = ReadFlight(bytes);
    EXPECT_NE(RefusedWith(fragment, bytes, "not-a-flight-record"), nullptr) << bytes;
    EXPECT_EQ(fragment.bytes.understood, 0u);
    EXPECT_TRUE(fragment.streams.empty());
  }
}

TEST(FlightRecorderHostile, ReadsEveryCompleteEntryOfEveryPrefix) {
  for (const std::string& name : SampleNames()) {
    const std::string whole = ReadSample(name);
    const Fragment full = ReadFlight(whole);
    size_t before = 0;
    std::vector<size_t> sizes;
    for (size_t size = 0; size<whole.size(); size += whole.size()> 4000 ? 61 : 1) sizes.push_back(size);
    sizes.push_back(whole.size() - 1);
    for (const size_t size : sizes) {
      const Fragment part = ReadFlight(std::string_view(whole).substr(0, size));
      ASSERT_TRUE(AddsUp(part, size)) << name << size;
      ASSERT_NE(FindDiagnostic(part, "truncated"), nullptr) << name << " " << size;
      ASSERT_EQ(part.streams.size(), 1u);
      EXPECT_TRUE(part.streams[0].cut);
      EXPECT_FALSE(part.stub) << "a cut file says nothing of the recorder";
      const size_t count = CallCount(part);
      ASSERT_GE(count, before) << name << size;
      ASSERT_LE(count, CallCount(full));
      for (size_t i = before; i < count; ++i) {
        ASSERT_EQ(part.streams[0].calls[i].record, full.streams[0].calls[i].record);
        ASSERT_EQ(part.streams[0].calls[i].seq, full.streams[0].calls[i].seq);
        ASSERT_EQ(part.streams[0].calls[i].offset, full.streams[0].calls[i].offset);
      }
      before = count;
    }
    EXPECT_EQ(before, CallCount(full)) << name;
  }
}

TEST(FlightRecorderHostile, SaysAfterHowManyEntriesAFileIsCut) {
  const std::string bytes = ReadSample("v2.10_cut_nccl_trace_rank_0");
  const Fragment fragment = ReadFlight(bytes);
  EXPECT_EQ(CallCount(fragment), 23u);
  EXPECT_NE(FindDiagnostic(fragment, "truncated")->message.find("after 23 entries"), std::string::npos);
  EXPECT_EQ(fragment.bytes.not_understood, 2u);
  EXPECT_EQ(fragment.groups.size(), 3u) << "what stands before the cut is known";
  EXPECT_EQ(fragment.events.at(0).As<Version>().number, "2.28.9");
  EXPECT_NE(FindDiagnostic(ReadFlight(""), "truncated")->message.find("empty"), std::string::npos);
}

TEST(FlightRecorderHostile, CountsWhatStandsBehindTheEnd) {
  const std::string bytes = WriteDump({EntryText{}});
  const Fragment fragment = ReadFlight(bytes + "garbage");
  EXPECT_EQ(CallCount(fragment), 1u);
  EXPECT_EQ(fragment.bytes.understood, bytes.size());
  EXPECT_EQ(fragment.bytes.not_understood, 7u);
  EXPECT_NE(FindDiagnostic(fragment, "trailing-bytes"), nullptr);
}

TEST(FlightRecorderHostile, RefusesMemoNumbersThatCannotBe) {
  const std::string start = std::string("\x80\x02}") + "(" + Text("version");
  for (const std::string& bytes : {start + "r" + Bytes(0xffffffff, 4) + ".", start + "r" + Bytes(100000, 4) + ".",
                                   start + "j" + Bytes(0xfffffff0, 4) + ".", start + "h\x05.", start + "q\x07h\x03."}) {
    EXPECT_NE(RefusedWith(ReadFlight(bytes), bytes, "pickle-malformed"), nullptr);
  }
}

TEST(FlightRecorderHostile, ReadsAMemoThatStartsAtOne) {
  const std::string bytes = std::string("\x80\x02}q\x01(") + Text("version") + "q\x02" + Text("2.4") + "q\x03" +
                            Text("pg_status") + "}q\x04(" + "u" + "u.";
  const Fragment fragment = ReadFlight(bytes);
  EXPECT_TRUE(fragment.stub);
  EXPECT_EQ(FindDiagnostic(fragment, "pickle-malformed"), nullptr);
}

TEST(FlightRecorderHostile, SurvivesLengthsBeyondTheFile) {
  for (const std::string& bytes :
       {"\x80\x02}(X" + Bytes(0xffffffff, 4) + "abc", "\x80\x04}(\x8d" + Bytes(~uint64_t{0}, 8) + "abc",
        "\x80\x02}(\x8b" + Bytes(0xffffffff, 4) + "abc", "\x80\x04\x95" + Bytes(~uint64_t{0}, 8) + "}("}) {
    EXPECT_NE(RefusedWith(ReadFlight(bytes), bytes, "truncated"), nullptr);
  }
}

TEST(FlightRecorderHostile, SurvivesBrokenStacks) {
  for (const char* body : {"u",      "(u",     "e",         "(e",   "s",       "a",  "}s",  "]a",  "}(u)s", "}(Ku",
                           "}(K\1u", "](K\1u", "}(K\1K\1e", "\x86", "K\1\x86", "t",  "(t.", "q\1", "\x94",  "}((u",
                           "}(](u",  "}((eu",  "",          ".",    "}}.",     "(.", "}(.", "(}s", "K\1(s", "}(K\1s"}) {
    const std::string bytes = std::string("\x80\x02") + body;
    EXPECT_TRUE(AddsUp(ReadFlight(bytes), bytes.size()));
    EXPECT_FALSE(ReadFlight(bytes).diagnostics.empty()) << body;
  }
}

TEST(FlightRecorderHostile, BoundsNestingAndMarks) {
  const std::string marks = "\x80\x02" + Repeat("(", 5'000'000);
  EXPECT_NE(RefusedWith(ReadFlight(marks), marks, "pickle-malformed")->message.find("nesting"), std::string::npos);
  const std::string lists = "\x80\x02" + Repeat("](", 2'000'000);
  EXPECT_NE(RefusedWith(ReadFlight(lists), lists, "pickle-malformed"), nullptr);
  const std::string json = Repeat("[", 3'000'000);
  EXPECT_TRUE(AddsUp(ReadFlight(json), json.size()));
}

TEST(FlightRecorderHostile, DoesNotPayForAListAgainAndAgain) {
  // One list of sizes, one stack, one string of ranks; each used a hundred thousand times by reference.
  const std::string entry_head = "}(" + Text("profiling_name") + Text("x") + Text("pg_id") + Int(1);
  std::string bytes = "\x80\x02}(" + Text("entries") + "](" + entry_head + Text("input_sizes") + "](" +
                      Repeat("](K\2e", 100'000) + "eq" + Bytes(0, 1) + "u";
  const std::string reuse = entry_head + Text("input_sizes") + "h" + Bytes(0, 1) + "u";
  bytes += Repeat(reuse, 50'000) + "e" + Text("pg_config") + "}(";
  const std::string ranks = "[" + Repeat("1, ", 100'000) + "]";
  bytes += Text("a") + "}(" + Text("ranks") + Text(ranks) + "q" + Bytes(1, 1) + "u";
  for (int i = 0; i < 50'000; ++i)
    bytes += Text("g" + std::to_string(i)) + "}(" + Text("ranks") + "h" + Bytes(1, 1) + "u";
  bytes += "uu.";
  const auto begin = std::chrono::steady_clock::now();
  const Fragment fragment = ReadFlight(bytes);
  const auto spent = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(AddsUp(fragment, bytes.size()));
  ASSERT_EQ(CallCount(fragment), 50'001u);
  EXPECT_EQ(fragment.streams[0].calls.back().in_elements, 200'000);
  EXPECT_EQ(fragment.groups.size(), 50'001u + 1);  // and the one that the entries name
  EXPECT_NE(FindDiagnostic(fragment, "too-many-members"), nullptr);
  EXPECT_LT(std::chrono::duration<double>(spent).count(), 20.0);
}

TEST(FlightRecorderHostile, IgnoresAListThatGrowsAfterItWasUsed) {
  const std::string head = "}(" + Text("profiling_name") + Text("x") + Text("pg_id") + Int(1) + Text("input_sizes");
  const std::string bytes =
      "\x80\x02](" + head + "](](K\4ee" + "q" + Bytes(0, 1) + "u" + head + "h" + Bytes(0, 1) + "(](K\7ee" + "u" + "e.";
  const Fragment fragment = ReadFlight(bytes);
  ASSERT_EQ(CallCount(fragment), 2u);
  EXPECT_EQ(fragment.streams[0].calls[0].in_elements, 4);
  EXPECT_EQ(fragment.streams[0].calls[1].in_elements, 4);
}

TEST(FlightRecorderHostile, SurvivesEveryByteFlipOfASmallDump) {
  const std::string whole = ReadSample("v2.10_python_single_nccl_trace_rank_0");
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ flip);
      ASSERT_TRUE(AddsUp(ReadFlight(bytes), bytes.size())) << at;
    }
  }
}

}  // namespace
}  // namespace tacet
