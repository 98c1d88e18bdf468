// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: samples and reading a text as a file.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/format.h"

namespace tacet {

extern const Format kTorchLogFormat;

inline std::string SampleText(const std::string& name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR "/src/evidence/torch_log/samples/") + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Fragment ReadText(std::string_view bytes, std::string_view path) {
  Fragment fragment;
  kTorchLogFormat.read({path, bytes, false}, fragment);
  EXPECT_EQ(fragment.bytes.total, bytes.size());
  EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, bytes.size()) << path;
  return fragment;
}

inline Fragment ReadSample(const std::string& name) { return ReadText(SampleText(name), name); }

inline std::vector<const Event*> EventsOf(const Fragment& fragment, EventKind kind) {
  std::vector<const Event*> events;
  for (const Event& event : fragment.events)
    if (event.kind == kind) events.push_back(&event);
  return events;
}

// The only event of a kind.
inline Event OneEvent(const Fragment& fragment, EventKind kind) {
  const auto events = EventsOf(fragment, kind);
  EXPECT_EQ(events.size(), 1u) << "events of kind " << static_cast<int>(kind);
  return events.empty() ? Event() : *events.front();
}

inline Rank RankOf(const Fragment& fragment, const Event& event) {
  return event.speaker == kNobody ? Rank{} : fragment.speakers.at(event.speaker).rank;
}

}  // namespace tacet
