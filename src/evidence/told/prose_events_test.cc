// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/prose_events.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "evidence/load.h"

namespace tacet {
namespace {

// What is left of events of these kinds at these lines.
std::vector<uint32_t> Left(const std::string& text, std::initializer_list<std::pair<EventKind, uint32_t>> events) {
  Fragment fragment;
  for (const auto& [kind, line] : events) {
    Event& event = fragment.events.emplace_back();
    event.kind = kind;
    event.source.line = line;
  }
  DropRepeatedInProse(text, fragment);
  std::vector<uint32_t> lines;
  for (const Event& event : fragment.events) lines.push_back(event.source.line);
  return lines;
}

const std::string kLog =
    "Training stops with no space left on device\n"
    "\n"
    "After two epochs the job says that there is no space left on the device.\n"
    "```\n"
    "epoch 2 step 900 loss 1.31\n"
    "OSError: [Errno 28] No space left on device: '/scratch/run7/step900.pt'\n"
    "```\n";

TEST(ProseEvents, ASentenceThatRepeatsALineOfTheLogIsDropped) {
  EXPECT_EQ(Left(kLog, {{EventKind::disk_full, 1}, {EventKind::disk_full, 3}, {EventKind::disk_full, 6}}),
            std::vector<uint32_t>({6}));
  // Another kind of event, in the same words.
  EXPECT_EQ(Left(kLog, {{EventKind::disk_full, 1}, {EventKind::shared_memory_full, 6}}), std::vector<uint32_t>({6}));
}

TEST(ProseEvents, WhatOnlyTheSentenceTellsStays) {
  EXPECT_EQ(Left(kLog, {{EventKind::disk_full, 1}}), std::vector<uint32_t>({1}));
  EXPECT_EQ(Left(kLog, {{EventKind::rdma_failed, 1}, {EventKind::disk_full, 6}}), std::vector<uint32_t>({6}))
      << "its words are those of line 6";
  const std::string other = "The switch of rack 4 had lost its power\n\n```\nOSError: [Errno 28] No space left\n```\n";
  EXPECT_EQ(Left(other, {{EventKind::process_killed, 1}, {EventKind::disk_full, 4}}), std::vector<uint32_t>({1, 4}));
}

TEST(ProseEvents, WhatTheSentencePlaysDownIsDropped) {
  const std::string text = "Misleading ibv_create_cq error message on a host without adapters\n\n```\nstep 1\n```\n";
  EXPECT_TRUE(Left(text, {{EventKind::rdma_failed, 1}}).empty());
  EXPECT_TRUE(PlaysDown("it stops there, no error, no timeout"));
  EXPECT_FALSE(PlaysDown("it stops there with an error"));
}

TEST(ProseEvents, LinesOfTheLogAreNoneOfThem) {
  const std::string log =
      "step 1 loss 2.0\n[rank3] write failed: no space left on device now\n[rank5] write failed: no space left on "
      "device now\nstep 2 loss 1.9\n";
  EXPECT_EQ(Left(log, {{EventKind::disk_full, 2}, {EventKind::disk_full, 3}}), std::vector<uint32_t>({2, 3}));
}

}  // namespace
}  // namespace tacet
