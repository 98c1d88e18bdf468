// SPDX-License-Identifier: Apache-2.0
#include "live/agent/box_file_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/mapped_file.h"
#include "evidence/black_box/black_box_import.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;

std::string SampleFolder() { return TACET_SOURCE_DIR "/src/evidence/black_box/samples"; }

std::vector<std::string> Samples() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(SampleFolder())) paths.push_back(entry.path());
  return paths;
}

std::string BytesOf(const std::string& path) { return std::string(MappedFile::Open(path)->bytes()); }

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) {
    char name[] = "/tmp/tacet_box_XXXXXX";
    const int fd = ::mkstemp(name);
    path_ = name;
    ::close(fd);
    Write(bytes);
  }
  ~TemporaryFile() { fs::remove(path_); }
  void Write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<long>(bytes.size()));
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::map<uint64_t, BlackBoxOp> OpsOf(const BlackBox& box, bool in_table) {
  std::map<uint64_t, BlackBoxOp> ops;
  for (const BlackBoxOp& op : box.ops)
    if (op.in_table() == in_table) ops.emplace(op.op.serial, op);
  return ops;
}

TEST(BoxFileReader, CopiesWhatIsInFlightAndTheNewestRecords) {
  for (const std::string& path : Samples()) {
    SCOPED_TRACE(path);
    const BlackBox whole = ParseBlackBox(BytesOf(path));
    const std::string copied = BoxFileReader::Open(path)->Copy(16);
    const BlackBox copy = ParseBlackBox(copied);
    ASSERT_EQ(copy.trouble, BoxTrouble::none) << copy.reason;
    EXPECT_FALSE(copy.cut);
    EXPECT_EQ(copy.torn, 0u);
    EXPECT_EQ(copy.comms.size(), whole.comms.size());
    EXPECT_EQ(copy.peers.size(), whole.peers.size());
    EXPECT_EQ(copy.proxies.size(), whole.proxies.size());
    const auto in_flight = OpsOf(whole, true), copied_in_flight = OpsOf(copy, true);
    ASSERT_EQ(copied_in_flight.size(), in_flight.size());
    for (const auto& [serial, op] : in_flight) {
      EXPECT_EQ(std::memcmp(&copied_in_flight.at(serial).op, &op.op, sizeof op.op), 0);
      EXPECT_EQ(copy.GroupOf(op.op) == nullptr, whole.GroupOf(op.op) == nullptr);
    }
    const auto ended = OpsOf(whole, false), copied_ended = OpsOf(copy, false);
    EXPECT_EQ(copied_ended.size(), std::min<size_t>(16, ended.size()));
    for (const auto& [serial, op] : copied_ended) EXPECT_EQ(std::memcmp(&ended.at(serial).op, &op.op, sizeof op.op), 0);
  }
}

// A small copy must tell the rules the same as the box itself.
TEST(BoxFileReader, FlowsStayWithTheirOperations) {
  bool any = false;
  for (const std::string& path : Samples()) {
    const std::string bytes = BytesOf(path), copied = BoxFileReader::Open(path)->Copy(1u << 20);
    Fragment whole, copy;
    ImportBlackBox({.path = "a", .bytes = bytes}, whole);
    ImportBlackBox({.path = "a", .bytes = copied}, copy);
    ASSERT_EQ(copy.in_flight.size(), whole.in_flight.size()) << path;
    for (size_t i = 0; i < whole.in_flight.size(); ++i) {
      EXPECT_EQ(copy.in_flight[i].flows.size(), whole.in_flight[i].flows.size()) << path;
      EXPECT_EQ(copy.in_flight[i].host, whole.in_flight[i].host) << path;
      any |= !whole.in_flight[i].flows.empty();
    }
    EXPECT_EQ(copy.streams[0].calls.size(), whole.streams[0].calls.size()) << path;
    EXPECT_EQ(copy.streams[0].from_start, whole.streams[0].from_start) << path;
  }
  EXPECT_TRUE(any) << "no sample has a network operation in flight";
}

TEST(BoxFileReader, FollowsEachRecordOnce) {
  const std::string path = SampleFolder() + "/healthy_rank0.box";
  const auto reader = BoxFileReader::Open(path);
  const size_t expected = OpsOf(ParseBlackBox(BytesOf(path)), false).size();
  BoxFileReader::RingPlace place;
  size_t seen = 0;
  reader.value().Follow(place, [&](const box::Op&) { ++seen; });
  EXPECT_EQ(seen, expected);
  reader.value().Follow(place, [&](const box::Op&) { ++seen; });
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(place.torn + place.lapped, 0u);
}

TEST(BoxFileReader, WaitsOnceForARecordThatIsBeingWrittenThenGivesItUp) {
  std::string bytes = BytesOf(SampleFolder() + "/healthy_rank0.box");
  const BlackBox box = ParseBlackBox(bytes);
  ASSERT_GT(box.header.ring_head, 3u);
  bytes[box.header.ring.offset + 2 * sizeof(box::Record)] ^= 1;  // the third record's sequence word
  const TemporaryFile file(bytes);
  const auto reader = BoxFileReader::Open(file.path());
  BoxFileReader::RingPlace place;
  size_t seen = 0;
  reader.value().Follow(place, [&](const box::Op&) { ++seen; });
  EXPECT_EQ(seen, 2u);
  reader.value().Follow(place, [&](const box::Op&) { ++seen; });
  EXPECT_EQ(seen, box.header.ring_head - 1);
  EXPECT_EQ(place.torn, 1u);
}

TEST(BoxFileReader, EveryCutOfABoxIsReadAsFarAsItGoes) {
  const std::string bytes = BytesOf(SampleFolder() + "/hang_stuck_rank1.box");
  const TemporaryFile file("");
  for (size_t size = 0; size < bytes.size(); size += size < 5000 ? 97 : 7919) {
    file.Write(bytes.substr(0, size));
    const auto reader = BoxFileReader::Open(file.path());
    const BlackBox copy = ParseBlackBox(reader.value().Copy(8));
    EXPECT_EQ(copy.trouble == BoxTrouble::none, size >= sizeof(box::Header)) << size;
    BoxFileReader::RingPlace place;
    reader.value().Follow(place, [](const box::Op&) {});
  }
}

TEST(BoxFileReader, AHeaderFullOfLiesCostsLittle) {
  const std::string bytes = BytesOf(SampleFolder() + "/hang_stuck_rank1.box");
  for (size_t at = 24; at < 600; at += 4) {
    std::string lie = bytes;
    std::memset(lie.data() + at, 0xff, 4);
    const TemporaryFile file(lie);
    const auto reader = BoxFileReader::Open(file.path());
    const std::string copy = reader.value().Copy(64);
    EXPECT_LE(copy.size(), bytes.size() + sizeof(box::Header));
    ParseBlackBox(copy);
    BoxFileReader::RingPlace place;
    reader.value().Follow(place, [](const box::Op&) {});
  }
}

TEST(BoxFileReader, RefusesWhatIsNoFile) {
  EXPECT_FALSE(BoxFileReader::Open("/dev/null").ok());
  EXPECT_FALSE(BoxFileReader::Open("/tmp").ok());
  EXPECT_FALSE(BoxFileReader::Open("/tmp/there/is/none.box").ok());
}

}  // namespace
}  // namespace tacet
