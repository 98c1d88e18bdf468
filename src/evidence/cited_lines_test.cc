// SPDX-License-Identifier: Apache-2.0
#include "evidence/cited_lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tacet {
namespace {

TEST(FindLine, GoesByTheNumberOrByTheOffset) {
  const std::string text = "one\ntwo\r\nthree";
  EXPECT_EQ(FindLine(text, 1, 0), "one");
  EXPECT_EQ(FindLine(text, 2, 0), "two");
  EXPECT_EQ(FindLine(text, 3, 0), "three");
  EXPECT_EQ(FindLine(text, 4, 0), "");
  EXPECT_EQ(FindLine(text, 2, 4), "two") << "the first byte of the line";
  EXPECT_EQ(FindLine(text, 2, 6), "two");
  EXPECT_EQ(FindLine(text, 9, 11), "three") << "a number behind the end";
  EXPECT_EQ(FindLine(text, 2, 11), "two") << "the report shows the number";
  EXPECT_EQ(FindLine(text, 1, 99), "one");
  EXPECT_EQ(FindLine(text, 9, 99), "");
  EXPECT_EQ(FindLine("", 1, 0), "");
}

class CitedLinesOfAFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() / ("tacet_cited_" + name + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "a");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::filesystem::path folder_;
};

TEST_F(CitedLinesOfAFolder, AreReadByTheNameThatTheReportShows) {
  Write("a/rank0.log", "first\nsecond\n");
  Write("rank1.log", "other\n");
  CitedLines lines({folder_.string()});
  EXPECT_EQ(lines.Read("a/rank0.log", 2, 0), "second");
  EXPECT_EQ(lines.Read("rank1.log", 1, 0), "other");
  EXPECT_EQ(lines.Read("a/rank0.log", 1, 0), "first");
  EXPECT_EQ(lines.Read("rank9.log", 1, 0), "") << "no such file";
  EXPECT_EQ(lines.Read("rank1.log", 0, 0), "") << "a file without lines";
  CitedLines one({(folder_ / "rank1.log").string()});
  EXPECT_EQ(one.Read("rank1.log", 1, 0), "other");
}

TEST_F(CitedLinesOfAFolder, AreQuotedWithoutColours) {
  Write("a/rank0.log", "\x1b[36m(main_task pid=12)\x1b[0m text\n");
  CitedLines lines({folder_.string()});
  EXPECT_EQ(lines.Read("a/rank0.log", 1, 0), "(main_task pid=12) text");
}

TEST_F(CitedLinesOfAFolder, StayInsideTheFolder) {
  Write("secret", "hidden\n");
  CitedLines lines({(folder_ / "a").string()});
  EXPECT_EQ(lines.Read("../secret", 1, 0), "");
  EXPECT_EQ(lines.Read("x/../../secret", 1, 0), "");
}

TEST_F(CitedLinesOfAFolder, AreNotGuessedWhereTwoFilesHaveTheName) {
  std::filesystem::create_directories(folder_ / "b");
  Write("a/log", "of a\n");
  Write("b/log", "of b\n");
  CitedLines lines({(folder_ / "a").string(), (folder_ / "b").string()});
  EXPECT_EQ(lines.Read("log", 1, 0), "");
}

TEST_F(CitedLinesOfAFolder, AreCutOrLeftOutWhereNobodyCouldReadThem) {
  Write("long", std::string(1000, 'x') + "\n");
  Write("trace", std::string(10000, 'x'));
  Write("binary", std::string("a\0b\n", 4));
  CitedLines lines({folder_.string()});
  EXPECT_EQ(lines.Read("long", 1, 0), std::string(500, 'x') + "...");
  EXPECT_EQ(lines.Read("trace", 1, 0), "");
  EXPECT_EQ(lines.Read("binary", 1, 0), "");
}

}  // namespace
}  // namespace tacet
