// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacet {
namespace {

Fragment FactsOf(const std::string& text) {
  Fragment fragment;
  AddToldFacts(text, SourceRef{FileId{}, 1, 0}, fragment);
  PlaceToldXids(text, fragment);
  return fragment;
}

std::vector<int64_t> XidsOf(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const Event& event : FactsOf(text).events)
    if (event.kind == EventKind::xid) numbers.push_back(event.As<Xid>().number);
  return numbers;
}

TEST(ToldFacts, XidsOfAListAreAllRead) {
  EXPECT_EQ(XidsOf("Xid 48 / 63: uncorrectable ECC"), (std::vector<int64_t>{48, 63}));
  EXPECT_EQ(XidsOf("bursts of Xid 94, then Xid 95"), (std::vector<int64_t>{94, 95}));
  EXPECT_EQ(XidsOf("We got XID error 79 on one card"), (std::vector<int64_t>{79}));
}

TEST(ToldFacts, WhatIsAskedOrDeniedIsNotRead) {
  for (const char* line : {"There is no Xid 79 in dmesg", "Could it be Xid 48?", "Also curious what an Xid 79 is.",
                           "Xid 31 would be the program's", "NVRM: Xid (PCI:0000:41:00): 79", "maxid 48 reached",
                           "It does not end with -9"})
    EXPECT_TRUE(FactsOf(line).events.empty()) << line;
}

TEST(ToldFacts, TheOnlyAddressOfTheTextIsThatOfItsXids) {
  EXPECT_EQ(FactsOf("dmesg is all of `0000:9C:00` (GPU2): Xid 48").events.at(0).As<Xid>().pci, "0000:9c:00");
  EXPECT_EQ(FactsOf("Xid 48 on 0000:9c:00 and on 0000:41:00").events.at(0).As<Xid>().pci, "");
}

TEST(ToldFacts, TheSignalThatEndedAProcess) {
  const Fragment fragment = FactsOf("works for one node. With two it ends with -9 after 5 steps");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].As<ProcessEnd>().code, -9);
  EXPECT_TRUE(fragment.events[0].Means(Meaning::in_prose));
  EXPECT_TRUE(FactsOf("the list ends with 9 entries").events.empty());
  EXPECT_TRUE(FactsOf("the epoch ends with -9.5 as reward").events.empty());
}

TEST(ToldFacts, PowerBesideFullUtilization) {
  const Fragment fragment = FactsOf("No exception. Power sits near 100W of 700W, GPU-Util stays 100%.");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].As<GpuLoad>().watts, 100);
  EXPECT_EQ(fragment.events[0].As<GpuLoad>().most_watts, 700);
  EXPECT_TRUE(FactsOf("Power is at 650W of 700W").events.empty());
}

TEST(ToldFacts, AnUncorrectableErrorOfTheMemory) {
  const Fragment fragment = FactsOf("The card is not usable due to an Uncorrectable ECC Error since noon.");
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::cuda_error);
  EXPECT_TRUE(FactsOf("There are no uncorrectable ECC errors on it.").events.empty());
  EXPECT_TRUE(FactsOf("Is it an uncorrectable ECC error?").events.empty());
}

TEST(ToldFacts, TheLimitOfLockedMemoryIsReadInKib) {
  const Fragment told = FactsOf("ulimit -l shows 64 in the container");
  ASSERT_EQ(told.events.size(), 1u);
  EXPECT_TRUE(told.events[0].As<RdmaFailure>().only_warned);
  EXPECT_EQ(told.events[0].As<RdmaFailure>().code, 64 * 1024);
  for (const char* line : {"ulimit -l shows unlimited for me", "What if ulimit -l is 64?", "set ulimit -l unlimited"})
    EXPECT_TRUE(FactsOf(line).events.empty()) << line;
}

TEST(ToldFacts, AdaptersThatTheHostsHaveAreRead) {
  const Fragment told = FactsOf("8 GPUs on one node was 4.1 s/it!! both have 4x HDR");
  ASSERT_EQ(told.events.size(), 1u);
  EXPECT_EQ(told.events[0].kind, EventKind::device_found);
  EXPECT_EQ(told.events[0].As<NetworkDevice>().name, "HDR InfiniBand");
  EXPECT_EQ(FactsOf("The nodes have InfiniBand but NCCL does not use it").events.size(), 1u);
  for (const char* line : {"The nodes have no InfiniBand", "Should we ask for nodes that have InfiniBand?",
                           "It has a HDRI image loader", "If the hosts have RoCE, set the GID index"})
    EXPECT_TRUE(FactsOf(line).events.empty()) << line;
}

}  // namespace
}  // namespace tacet
