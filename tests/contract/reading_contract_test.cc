// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "base/compressed_text.h"
#include "evidence/load.h"
#include "evidence/registry.h"
#include "fragment_digest.h"
#include "sample_file.h"

namespace tacet {
namespace {

// The bytes in a buffer of exactly their size, so that a read past the end is seen by the sanitizer.
struct ExactBuffer {
  explicit ExactBuffer(std::string_view bytes) : data(new char[bytes.size()]), size(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), data.get());
  }
  std::string_view view() const { return {data.get(), size}; }
  std::unique_ptr<char[]> data;
  size_t size;
};

class ReadingSample : public testing::TestWithParam<SampleFile> {};

TEST_P(ReadingSample, GivesSomethingAndAccountsForEveryByte) {
  const SampleFile& sample = GetParam();
  const Fragment fragment = ReadWith(*sample.format, sample.name, sample.bytes);
  EXPECT_EQ(FindAccountingError(fragment.bytes, sample.bytes.size()), "");
  EXPECT_EQ(FindBrokenReference(fragment, sample.bytes.size()), "");
  EXPECT_TRUE(fragment.bytes.understood > 0 || fragment.stub || !fragment.diagnostics.empty())
      << "a sample of which nothing is understood, and nothing said about it, is no sample";
}

TEST_P(ReadingSample, GivesTheSameTwice) {
  const SampleFile& sample = GetParam();
  EXPECT_EQ(Digest(ReadWith(*sample.format, sample.name, sample.bytes)),
            Digest(ReadWith(*sample.format, sample.name, sample.bytes)));
}

TEST_P(ReadingSample, DoesNotDependOnTheRestOfTheBuffer) {
  const SampleFile& sample = GetParam();
  const std::string surrounded = sample.bytes + "\n{\"rank\": 7}\n[rank7]: NCCL WARN\n";
  EXPECT_EQ(Digest(ReadWith(*sample.format, sample.name, std::string_view(surrounded).substr(0, sample.bytes.size()))),
            Digest(ReadWith(*sample.format, sample.name, sample.bytes)));
}

TEST_P(ReadingSample, SurvivesEveryPrefixAndAccountsForIt) {
  const SampleFile& sample = GetParam();
  const size_t step = sample.bytes.size() / 150 + 1;
  for (size_t cut = 0; cut < sample.bytes.size(); cut += step) {
    const ExactBuffer prefix(std::string_view(sample.bytes).substr(0, cut));
    for (const Format* format : AllFormats()) format->recognise(prefix.view().substr(0, kPrefixBytes), sample.name);
    const Fragment fragment = ReadWith(*sample.format, sample.name, prefix.view(), cut % 2 == 1);
    ASSERT_EQ(FindAccountingError(fragment.bytes, cut), "") << "cut at " << cut;
    ASSERT_EQ(FindBrokenReference(fragment, cut), "") << "cut at " << cut;
  }
}

TEST_P(ReadingSample, SurvivesEverySuffixAndAccountsForIt) {
  const SampleFile& sample = GetParam();
  const size_t step = sample.bytes.size() / 40 + 1;
  for (size_t from = 0; from < sample.bytes.size(); from += step) {
    const ExactBuffer suffix(std::string_view(sample.bytes).substr(from));
    const Fragment fragment = ReadWith(*sample.format, sample.name, suffix.view());
    ASSERT_EQ(FindAccountingError(fragment.bytes, suffix.size), "") << "from " << from;
    ASSERT_EQ(FindBrokenReference(fragment, suffix.size), "") << "from " << from;
  }
}

TEST_P(ReadingSample, IsBorneByEveryOtherFormat) {
  const SampleFile& sample = GetParam();
  for (const Format* other : AllFormats()) {
    const Fragment fragment = ReadWith(*other, sample.name, sample.bytes);
    EXPECT_EQ(FindAccountingError(fragment.bytes, sample.bytes.size()), "") << other->name;
    EXPECT_EQ(FindBrokenReference(fragment, sample.bytes.size()), "") << other->name;
  }
}

TEST_P(ReadingSample, GivesTheSameWhenCompressed) {
  const SampleFile& sample = GetParam();
  const Fragment plain = ReadFragment(sample.name, sample.bytes, {});
  EXPECT_NE(plain.format.find(sample.format->name), std::string::npos) << plain.format;
  for (const std::string& compressed : {Gzip(sample.bytes), Zstd(sample.bytes)}) {
    const Fragment unpacked = ReadFragment(sample.name, compressed, {});
    EXPECT_EQ(unpacked.format, plain.format);
    EXPECT_EQ(Digest(unpacked), Digest(plain));
    EXPECT_EQ(unpacked.bytes.understood + unpacked.bytes.ignored + unpacked.bytes.not_understood, unpacked.bytes.total);
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, ReadingSample, testing::ValuesIn(AllSamples()),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace tacet
