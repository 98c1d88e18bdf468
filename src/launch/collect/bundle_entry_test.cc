// SPDX-License-Identifier: Apache-2.0
#include "launch/collect/bundle_entry.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(BundleEntry, NamesNeitherLeaveTheFolderNorTrickATerminal) {
  EXPECT_EQ(SafeName("/var/log/train.log"), "var/log/train.log");
  EXPECT_EQ(SafeName("../../etc/passwd"), "%2E%2E/%2E%2E/etc/passwd");
  EXPECT_EQ(SafeName("a\nb\x1b[31m"), "a%0Ab%1B[31m");
  EXPECT_EQ(SafeName("logs/-rf \"x\" 'y'"), "logs/%2Drf %22x%22 %27y%27");
  EXPECT_EQ(SafeName(".hidden/x"), "%2Ehidden/x");
  EXPECT_EQ(SafeName(""), "unnamed");
  EXPECT_EQ(SafeName("Übung/訓練.log"), "Übung/訓練.log");
  EXPECT_EQ(SafeName("a\xff\x9b"
                     "31m\xc2\x9b"
                     "b\xe2\x80\xae"
                     "c"),
            "a%FF%9B31m%C2%9Bb%E2%80%AEc");
  EXPECT_NE(SafeName("a%0Ab"), SafeName("a\nb"));
  EXPECT_EQ(SafeName(SafeName("a\nb"), true), SafeName("a\nb"));
}

TEST(BundleEntry, TakesSecretsOutOfTextAndCountsThem) {
  BundleEntry entry;
  entry.bytes = "step 1\nexport DB_PASSWORD=hunter2hunter2\nstep 2\n";
  CleanEntry(entry, 1 << 20);
  EXPECT_EQ(entry.bytes.find("hunter2"), std::string::npos);
  EXPECT_NE(entry.bytes.find("step 2"), std::string::npos);
  ASSERT_EQ(entry.redacted.size(), 1u);
  EXPECT_EQ(entry.redacted.begin()->second, 1u);
}

TEST(BundleEntry, OverwritesSecretsInBinaryFilesWithoutMovingAnything) {
  BundleEntry entry;
  const std::string secret = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH";
  entry.bytes = std::string("\x80\x02X\x05\0\0\0", 7) + " " + secret + std::string("\0tail", 5);
  const size_t size = entry.bytes.size();
  CleanEntry(entry, 1 << 20);
  EXPECT_EQ(entry.bytes.size(), size);
  EXPECT_EQ(entry.bytes.find(secret), std::string::npos);
  EXPECT_TRUE(entry.bytes.ends_with("tail"));
}

TEST(BundleEntry, AHealthyLogStaysAsItIs) {
  BundleEntry entry;
  const std::string log =
      "node7:4711:4711 [0] NCCL INFO ncclCommInitRank comm 0x55d0c8f0 rank 0 nranks 4 commId 0x8a3e2b1c9f4d5e6a\n"
      "epoch 3 loss 0.173 tokens/s 152341 commit 4187a3f0c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6\n";
  entry.bytes = log;
  CleanEntry(entry, 1 << 20);
  EXPECT_EQ(entry.bytes, log);
  EXPECT_TRUE(entry.redacted.empty());
}

TEST(BundleEntry, ALargeTextKeepsItsBeginningAndItsEnd) {
  BundleEntry entry;
  entry.bytes = "first\n" + std::string(10'000, 'x') + "\nlast\n";
  CutText(entry, 1000);
  EXPECT_TRUE(entry.bytes.starts_with("first\n"));
  EXPECT_TRUE(entry.bytes.ends_with("last\n"));
  EXPECT_LT(entry.bytes.size(), 1100u);
  EXPECT_FALSE(entry.changed.empty());
}

}  // namespace
}  // namespace tacet
