// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "evidence/detect.h"
#include "evidence/registry.h"
#include "sample_file.h"

namespace tacet {

// For gtest's messages.
void PrintTo(Recognition recognition, std::ostream* out) {
  *out << (recognition == Recognition::yes ? "yes" : recognition == Recognition::maybe ? "maybe" : "no");
}

namespace {

TEST(Registry, NamesEveryFormatOnceAndDescribesIt) {
  std::set<std::string_view> names;
  for (const Format* format : AllFormats()) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    EXPECT_FALSE(format->description.empty()) << format->name;
    EXPECT_NE(format->recognise, nullptr) << format->name;
    EXPECT_NE(format->read, nullptr) << format->name;
  }
  EXPECT_GE(names.size(), 7u);
}

TEST(Registry, EveryFormatIsNamedAsItsFolder) {
  for (const Format* format : AllFormats())
    EXPECT_TRUE(std::filesystem::is_directory(FolderOf(*format))) << format->name;
}

TEST(Registry, EveryFormatCarriesSamples) {
  for (const Format* format : AllFormats()) {
    size_t samples = 0;
    for (const SampleFile& sample : AllSamples()) samples += sample.format == format;
    EXPECT_GT(samples, 0u) << format->name;
  }
}

// An empty file may still be somebody's by its name: a dump that was begun and never written.
TEST(Recognition, NobodyIsSureOfAnEmptyFile) {
  for (const Format* format : AllFormats())
    for (const SampleFile& sample : AllSamples())
      EXPECT_NE(format->recognise("", sample.name), Recognition::yes) << format->name << " by the name " << sample.name;
}

TEST(Recognition, NobodyClaimsWhatIsOfNoFormat) {
  const std::string noise = [] {
    std::string bytes;
    uint64_t state = 42;
    for (int i = 0; i < 8192; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes += static_cast<char>(state >> 56);
    }
    return bytes;
  }();
  const std::string foreign[] = {
      "The quick brown fox jumps over the lazy dog.\nPack my box with five dozen liquor jugs.\n",
      std::string(8192, '\0'),
      std::string("\x7f"
                  "ELF\x02\x01\x01\x00",
                  8),
      std::string("PK\x03\x04\x14\x00\x00\x00", 8),
      "a,b,c\n1,2,3\n4,5,6\n",
      "{\"name\": \"package\", \"version\": \"1.0.0\", \"dependencies\": {}}\n",
      "[1, 2, 3]\n",
      "<!DOCTYPE html>\n<html><head></head></html>\n",
      "#!/bin/bash\nset -e\ntorchrun --nproc_per_node 8 train.py\n",
      "import torch\nimport torch.distributed as dist\n\ndist.all_reduce(tensor)\n",
      noise,
  };
  for (const Format* format : AllFormats())
    for (const std::string& bytes : foreign)
      EXPECT_NE(format->recognise(bytes, "file.bin"), Recognition::yes)
          << format->name << " claims: " << testing::PrintToString(bytes.substr(0, 60));
}

class OfSample : public testing::TestWithParam<SampleFile> {};

TEST_P(OfSample, ItsFormatKnowsItBest) {
  const SampleFile& sample = GetParam();
  const Recognition own = sample.format->recognise(sample.prefix(), sample.name);
  EXPECT_NE(own, Recognition::no);
  for (const Format* other : AllFormats()) {
    if (other == sample.format) continue;
    const Recognition answer = other->recognise(sample.prefix(), sample.name);
    // Line logs share files: a tie between them is no conflict, both read it.
    if (other->shares_lines && sample.format->shares_lines) continue;
    EXPECT_LT(answer, own) << other->name << " is as sure";
  }
}

TEST_P(OfSample, TheDetectorGivesItToItsFormat) {
  const SampleFile& sample = GetParam();
  const Detection detection = Detect(sample.prefix(), sample.name);
  EXPECT_NE(std::find(detection.readers.begin(), detection.readers.end(), sample.format), detection.readers.end());
  EXPECT_TRUE(detection.tied.empty());
}

TEST_P(OfSample, ItsNameMakesNobodySure) {
  const SampleFile& sample = GetParam();
  for (const Format* format : AllFormats())
    EXPECT_NE(format->recognise("Lorem ipsum dolor sit amet,\nconsectetur adipiscing elit.\n", sample.name),
              Recognition::yes)
        << format->name;
}

TEST_P(OfSample, AMisleadingNameChangesNobodysMind) {
  const SampleFile& sample = GetParam();
  if (sample.format->recognise(sample.prefix(), sample.name) != Recognition::yes) GTEST_SKIP() << "only a weak sign";
  EXPECT_EQ(sample.format->recognise(sample.prefix(), "holiday.jpg"), Recognition::yes)
      << "it must rest on the content";
}

INSTANTIATE_TEST_SUITE_P(Recognition, OfSample, testing::ValuesIn(AllSamples()),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace tacet
