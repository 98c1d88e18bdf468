// SPDX-License-Identifier: Apache-2.0
#include "base/tar_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "base/tar_reader.h"

namespace tacet {
namespace {

std::string Pack(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string out;
  TarWriter tar([&](std::string_view bytes) {
    out.append(bytes);
    return true;
  });
  for (const auto& [name, bytes] : files) tar.Add(name, bytes, 1'700'000'000);
  tar.Finish();
  return out;
}

struct Read {
  std::vector<TarMember> members;
  bool complete = false;
  std::string problem;
};

Read Unpack(std::string_view bytes, uint64_t most = 1 << 20, size_t chunk = 700) {
  Read read;
  TarReader reader(
      [&](char* buffer, size_t size) {
        const size_t part = std::min({size, bytes.size(), chunk});
        std::memcpy(buffer, bytes.data(), part);
        bytes.remove_prefix(part);
        return part;
      },
      most);
  for (TarMember member; reader.Next(&member);) read.members.push_back(member);
  read.complete = reader.complete();
  read.problem = reader.problem();
  return read;
}

TEST(Tar, GivesBackWhatWasPutIn) {
  const std::string long_name = std::string(90, 'a') + "/" + std::string(150, 'b');
  const Read read = Unpack(Pack({{"n1/a.log", "hello"}, {long_name, std::string(512, 'x')}, {"empty", ""}}));
  ASSERT_EQ(read.members.size(), 3u);
  EXPECT_EQ(read.members[0].name, "n1/a.log");
  EXPECT_EQ(read.members[0].bytes, "hello");
  EXPECT_EQ(read.members[0].modified_s, 1'700'000'000);
  EXPECT_EQ(read.members[1].name, long_name);
  EXPECT_EQ(read.members[1].bytes.size(), 512u);
  EXPECT_TRUE(read.complete);
}

TEST(Tar, EveryCutIsToldAndNothingIsInvented) {
  const std::string whole = Pack({{"a", std::string(1000, 'a')}, {"b", "b"}});
  for (size_t size = 0; size < whole.size() - 1024; size += 37) {
    const Read read = Unpack(std::string_view(whole).substr(0, size));
    EXPECT_FALSE(read.complete) << size;
    EXPECT_LE(read.members.size(), 2u);
    for (const TarMember& member : read.members) EXPECT_LE(member.bytes.size(), member.size);
  }
}

TEST(Tar, KeepsNoMoreThanWanted) {
  const Read read = Unpack(Pack({{"big", std::string(100'000, 'x')}, {"next", "y"}}), 1000);
  ASSERT_EQ(read.members.size(), 2u);
  EXPECT_EQ(read.members[0].bytes.size(), 1000u);
  EXPECT_EQ(read.members[0].size, 100'000u);
  EXPECT_EQ(read.members[1].bytes, "y");
}

TEST(Tar, AClaimOfTerabytesCostsNothing) {
  std::string tar = Pack({{"a", "x"}});
  std::memcpy(tar.data() + 124, "77777777777", 11);
  EXPECT_FALSE(Unpack(tar).problem.empty());  // the sum does not fit any more
  EXPECT_FALSE(Unpack(std::string(4096, 'z')).problem.empty());
}

TEST(Sha256, FitsThePublishedVectors) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace tacet
