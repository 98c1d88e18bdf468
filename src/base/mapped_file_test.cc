// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace tacet {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tacet_mapped_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, std::string_view text) {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  std::filesystem::path folder_;
};

TEST_F(MappedFileTest, GivesTheBytesAndTheTime) {
  auto file = MappedFile::Open(Write("a", "hello"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->bytes(), "hello");
  EXPECT_GT(file->modified_wall_ns(), 1'500'000'000'000'000'000);
}

TEST_F(MappedFileTest, OpensAnEmptyFile) {
  auto file = MappedFile::Open(Write("empty", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, RefusesAFolder) {
  auto file = MappedFile::Open(folder_.string());
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("a directory"), std::string::npos) << file.error().message;
}

TEST_F(MappedFileTest, RefusesAFifoWithoutWaitingForAWriter) {
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  ::alarm(10);  // a wait would end the test program
  auto file = MappedFile::Open(Path("fifo"));
  ::alarm(0);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("a fifo"), std::string::npos) << file.error().message;
}

TEST_F(MappedFileTest, RefusesASocketByItsName) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, Path("socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  auto file = MappedFile::Open(Path("socket"));
  ::close(fd);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("a socket"), std::string::npos) << file.error().message;
}

TEST_F(MappedFileTest, RefusesADevice) {
  auto file = MappedFile::Open("/dev/zero");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("a device"), std::string::npos) << file.error().message;
}

TEST_F(MappedFileTest, TellsThatAFileIsMissing) {
  auto file = MappedFile::Open(Path("nothing"));
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("No such file"), std::string::npos) << file.error().message;
  EXPECT_FALSE(file.error().hint.empty());
}

TEST_F(MappedFileTest, TellsThatPermissionIsMissing) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = Write("secret", "hello");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  auto file = MappedFile::Open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().hint.find("permission"), std::string::npos);
}

TEST_F(MappedFileTest, MovesWithoutLosingTheBytes) {
  auto first = MappedFile::Open(Write("a", "hello"));
  auto second = MappedFile::Open(Write("b", "other"));
  ASSERT_TRUE(first.ok() && second.ok());
  MappedFile moved = std::move(*first);
  EXPECT_EQ(moved.bytes(), "hello");
  EXPECT_TRUE(first->bytes().empty());
  moved = std::move(*second);
  EXPECT_EQ(moved.bytes(), "other");
}

TEST_F(MappedFileTest, MovesAMappingToo) {
  auto first = MappedFile::Open(Write("a", "hello"), 0);
  ASSERT_TRUE(first.ok() && first->mapped());
  MappedFile moved = std::move(*first);
  EXPECT_FALSE(first->mapped());
  EXPECT_EQ(moved.bytes(), "hello");
  moved = std::move(*MappedFile::Open(Write("b", "other")));
  EXPECT_FALSE(moved.mapped());
  EXPECT_EQ(moved.bytes(), "other");
}

TEST_F(MappedFileTest, KeepsTheBytesOfAFileThatIsCutBehindItsBack) {
  const std::string path = Write("a", std::string(100'000, 'x'));
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(::truncate(path.c_str(), 10), 0);
  EXPECT_TRUE(file->bytes() == std::string(100'000, 'x'));
  EXPECT_FALSE(file->Shrunk());
}

TEST_F(MappedFileTest, SurvivesAMappedFileThatIsCut) {
  const std::string path = Write("a", std::string(1'000'000, 'x'));
  auto file = MappedFile::Open(path, 0);
  auto other = MappedFile::Open(Write("b", std::string(1'000'000, 'y')), 0);
  ASSERT_TRUE(file.ok() && other.ok());
  EXPECT_FALSE(file->Shrunk());
  ASSERT_EQ(::truncate(path.c_str(), 300'000), 0);
  EXPECT_EQ(file->bytes()[299'999], 'x');
  EXPECT_EQ(file->bytes()[999'999], '\0');
  EXPECT_EQ(file->bytes()[600'000], '\0');
  EXPECT_TRUE(file->Shrunk());
  EXPECT_EQ(other->bytes()[999'999], 'y');
  EXPECT_FALSE(other->Shrunk());
}

TEST_F(MappedFileTest, NoticesACutInsideTheLastPage) {
  const std::string path = Write("a", "some words");
  auto file = MappedFile::Open(path, 0);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(::truncate(path.c_str(), 4), 0);
  EXPECT_TRUE(file->Shrunk());
}

TEST_F(MappedFileTest, ReadsAHugeFileWithoutItsHoles) {
  const std::string path = Write("sparse", "first\n");
  ASSERT_EQ(::truncate(path.c_str(), off_t{50} << 30), 0);
  std::ofstream(path, std::ios::binary | std::ios::app) << "last\n";
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_GT(file->hole_bytes(), uint64_t{49} << 30);
  EXPECT_LT(file->bytes().size(), 1u << 20);
  EXPECT_TRUE(file->bytes().starts_with("first\n"));
  EXPECT_TRUE(file->bytes().ends_with("last\n"));
}

TEST_F(MappedFileTest, MapsNoMoreThanCanBeWatched) {
  const std::string path = Write("a", "some words");
  std::vector<MappedFile> many;
  while (many.size() < 2 * ShrinkGuard::kMostMappings) {
    auto file = MappedFile::Open(path, 0);
    if (!file.ok()) break;
    many.push_back(std::move(*file));
  }
  EXPECT_LE(many.size(), ShrinkGuard::kMostMappings);
  EXPECT_GE(many.size(), 2u);
  many.pop_back();
  EXPECT_TRUE(MappedFile::Open(path, 0).ok());
}

TEST_F(MappedFileTest, RefusesAFileOfTheKernel) {
  auto file = MappedFile::Open("/proc/self/status");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("kernel"), std::string::npos) << file.error().message;
  EXPECT_FALSE(file.error().hint.empty());
}

// Another fault than a shrunken file still ends the program.
TEST_F(MappedFileTest, LeavesOtherBusErrorsToTheirOwner) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = Write("a", std::string(100'000, 'x'));
  EXPECT_DEATH(
      {
        auto file = MappedFile::Open(path, 0);
        ::raise(SIGBUS);  // BUS_ADRERR is not its code
        ::raise(SIGBUS);
      },
      "");
}

TEST_F(MappedFileTest, PagesThatWereGivenBackComeBackFromTheFile) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  auto file = MappedFile::Open(Write("long", text), 0);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->mapped());
  EXPECT_TRUE(file->bytes() == text);
  GiveBackPages(file->bytes().substr(10, 300'000));
  GiveBackPages(file->bytes().substr(5, 1));
  GiveBackPages({});
  EXPECT_TRUE(file->bytes() == text);
}

}  // namespace
}  // namespace tacet
