// SPDX-License-Identifier: Apache-2.0
#include "nsys_import.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace tacet {

extern const Format kNsysFormat;

namespace {

std::string Sample(const std::string& name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/nsys/samples/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Fragment Read(std::string_view bytes, std::string_view path = "report.sqlite") {
  Fragment fragment;
  ReadNsys({path, bytes, false}, fragment);
  EXPECT_EQ(fragment.bytes.total, bytes.size());
  EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, fragment.bytes.total);
  return fragment;
}

bool Noted(const Fragment& fragment, std::string_view code) {
  for (const Diagnostic& diagnostic : fragment.diagnostics)
    if (diagnostic.code == code) return true;
  return false;
}

// The bytes of a database that the SQL makes.
std::string Make(const std::string& sql) {
  sqlite3* handle = nullptr;
  sqlite3_open(":memory:", &handle);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << (message ? message : "");
  sqlite3_int64 size = 0;
  unsigned char* data = sqlite3_serialize(handle, "main", &size, 0);
  std::string bytes(reinterpret_cast<char*>(data), static_cast<size_t>(size));
  sqlite3_free(data);
  sqlite3_close(handle);
  return bytes;
}

const std::string kKernelTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);";
const std::string kStrings = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);";

TEST(NsysImport, ReadsKernelsLaunchesStepsAndCollectivesOfARank) {
  const Fragment fragment = Read(Sample("nsys_2025_rank1.sqlite"), "anything.sqlite");
  ASSERT_EQ(fragment.timelines.size(), 1u);
  const Timeline& timeline = fragment.timelines[0];
  const Speaker& speaker = fragment.speakers.at(0);
  EXPECT_EQ(speaker.rank.value, 1);  // from the communicator, not from the name
  EXPECT_EQ(speaker.rank_certainty, Certainty::assumed);
  EXPECT_TRUE(Noted(fragment, "rank-assumed"));
  EXPECT_EQ(speaker.world_size, 2);
  EXPECT_EQ(speaker.host, "node01");
  EXPECT_EQ(speaker.pid, 4701);
  EXPECT_EQ(speaker.device, 1);  // the machine's number; the process itself calls it 0
  ASSERT_EQ(timeline.devices.size(), 1u);
  EXPECT_EQ(timeline.devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(timeline.devices[0].multiprocessors, 132);
  EXPECT_EQ(timeline.gpu.size(), 18u + 18u + 6u);
  EXPECT_EQ(timeline.launches.size(), timeline.gpu.size());
  ASSERT_EQ(timeline.steps.size(), 6u);
  EXPECT_EQ(timeline.steps[5].number, 5);
  EXPECT_EQ(timeline.begin_ns / 1'000'000'000, 1763164800);
  EXPECT_EQ(timeline.framework, "Nsight Systems");
  ASSERT_EQ(timeline.collectives.size(), 18u);
  const TraceCollective& first = timeline.collectives[0];
  EXPECT_EQ(first.kind, OpKind::all_reduce);
  EXPECT_EQ(first.in_elements, 4194304);
  EXPECT_EQ(first.type, DataType::uint8);
  EXPECT_EQ(first.group_size, 2);
  ASSERT_NE(first.gpu_event, kNoIndex);
  EXPECT_EQ(timeline.gpu[first.gpu_event].work, GpuWork::communication);
  ASSERT_EQ(fragment.groups.size(), 1u);
  EXPECT_EQ(fragment.groups[0].comm_id, 0x51a2b3c4d5e6f708u);
  EXPECT_EQ(fragment.groups[0].size, 2);
  EXPECT_EQ(fragment.groups[0].places, (std::vector<GroupPlace>{{{1}, {1}}}));
}

TEST(NsysImport, ReadsSeveralProcessesOfOneFile) {
  const Fragment fragment = Read(Sample("nsys_2022_one_host.sqlite"), "report_rank5.sqlite");
  ASSERT_EQ(fragment.timelines.size(), 2u);
  EXPECT_EQ(fragment.speakers[0].rank.value, 0);  // the device; one name cannot tell two ranks
  EXPECT_EQ(fragment.speakers[1].rank.value, 1);
  EXPECT_EQ(fragment.speakers[1].pid, 812);
  EXPECT_TRUE(Noted(fragment, "rank-assumed"));
  EXPECT_TRUE(Noted(fragment, "no-wall-clock"));
  EXPECT_TRUE(Noted(fragment, "graphs-as-a-whole"));
  for (const Timeline& timeline : fragment.timelines) {
    EXPECT_EQ(timeline.steps.size(), 3u);
    ASSERT_EQ(timeline.collectives.size(), 12u);
    EXPECT_EQ(timeline.collectives[3].kind, OpKind::all_gather);
    EXPECT_EQ(timeline.collectives[3].in_elements, -1);
  }
}

TEST(NsysImport, TheNameTellsTheRankOfAFileThatDoesNot) {
  const std::string bytes = Make(kStrings + kKernelTable +
                                 "INSERT INTO StringIds VALUES (1,'k');"
                                 "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5,9,0,7,1,72057594054705152,1,1);");
  EXPECT_EQ(Read(bytes, "nsys_rank3.sqlite").speakers.at(0).rank.value, 3);
  EXPECT_FALSE(Read(bytes, "report.sqlite").speakers.at(0).rank.known());
}

TEST(NsysImport, FindsNamesWithAndWithoutAKey) {
  const std::string rows = kKernelTable +
                           "INSERT INTO StringIds VALUES (70000,'void f<int>(int)'),(2,'f'),(3,'g');"
                           "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5,9,0,7,1,0,70000,2),(10,19,0,7,2,0,99,3);";
  for (const std::string& table : {kStrings, std::string("CREATE TABLE StringIds (id INTEGER, value TEXT);")}) {
    const Fragment fragment = Read(Make(table + rows));
    const Timeline& timeline = fragment.timelines.at(0);
    EXPECT_EQ(timeline.names.Get(timeline.gpu[0].name), "void f<int>(int)") << table;
    EXPECT_EQ(timeline.names.Get(timeline.gpu[1].name), "g") << table;  // the long name is not there
  }
}

TEST(NsysImport, SaysThatAnExportHasNoGpuWork) {
  const Fragment fragment =
      Read(Make(kStrings + "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER);"));
  EXPECT_TRUE(fragment.timelines.empty());
  EXPECT_TRUE(Noted(fragment, "no-gpu-events"));
}

TEST(NsysImport, LeavesTimesOutThatCannotBe) {
  const Fragment fragment =
      Read(Make(kStrings + kKernelTable +
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5,9,0,7,1,0,1,1),(9,5,0,7,1,0,1,1),"
                "(NULL,5,0,7,1,0,1,1),(-4,5,0,7,1,0,1,1),(1,9223372036854775807,0,7,1,0,1,1),"
                "('x','y',0,7,1,0,1,1),(1e300,2e300,0,7,1,0,1,1);"));
  ASSERT_EQ(fragment.timelines.size(), 1u);
  EXPECT_LE(fragment.timelines[0].gpu.size(), 2u);  // 'x' counts as 0, as SQLite has it
  EXPECT_TRUE(Noted(fragment, "odd-times"));
}

TEST(NsysImport, ReadsNothingThatASchemaOnlyPretends) {
  // A view that would run for ever, and a column that calls a function.
  const Fragment view =
      Read(Make(kStrings + "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                           "SELECT i+1 FROM n) SELECT i AS start, i AS end FROM n;"));
  EXPECT_TRUE(view.timelines.empty());
  const Fragment computed = Read(
      Make(kStrings + "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER AS (length(hex(zeroblob("
                      "1000)))), deviceId INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start) VALUES (1);"));
  EXPECT_TRUE(computed.timelines.empty());
}

TEST(NsysImport, SurvivesDamageAndSaysSo) {
  const std::string whole = Sample("nsys_2025_rank0.sqlite");
  size_t told = 0;
  for (size_t at = 100; at < whole.size(); at += 61) {
    std::string damaged = whole;
    for (size_t i = at; i < std::min(at + 16, damaged.size()); ++i) damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    told += Noted(Read(damaged), "truncated") || Noted(Read(damaged), "unreadable");
  }
  EXPECT_GT(told, 20u);
  const Fragment cut = Read(std::string_view(whole).substr(0, whole.size() / 2));
  EXPECT_TRUE(Noted(cut, "truncated") || Noted(cut, "unreadable"));
}

TEST(NsysImport, TellsOtherDatabasesApart) {
  const std::string other = Make("CREATE TABLE places (url TEXT);");
  EXPECT_EQ(kNsysFormat.recognise(other, "places.db"), Recognition::no);
  EXPECT_TRUE(Noted(Read(other), "unknown-format"));
  EXPECT_EQ(kNsysFormat.recognise(Make(kStrings + kKernelTable), "x"), Recognition::yes);
  EXPECT_EQ(kNsysFormat.recognise("SQLite", "x.sqlite"), Recognition::no);
}

TEST(NsysImport, AnswersAboutWriteAheadFiles) {
  std::string bytes = Make(kStrings + kKernelTable);
  bytes[18] = bytes[19] = 2;
  const Fragment fragment = Read(bytes);
  // Some versions of SQLite read such a file all the same.
  EXPECT_TRUE(fragment.timelines.empty());
  EXPECT_FALSE(fragment.diagnostics.empty());
}

}  // namespace
}  // namespace tacet
