// SPDX-License-Identifier: Apache-2.0
// The speed of every parser on one core: its samples, read from memory until at least so many megabytes went through.
// A line log's samples are put together to one large text first, since a real log is long; what has a frame of its own
// (pickle, JSON) is read file by file. Usage: parser_bench [MEGABYTES [FORMAT]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/decompress.h"
#include "evidence/registry.h"

namespace tacet {
namespace {

struct Sample {
  std::string name, bytes;
};

std::vector<Sample> SamplesOf(std::string_view format) {
  namespace fs = std::filesystem;
  std::vector<Sample> samples;
  const fs::path folder = fs::path(TACET_SOURCE_DIR) / "src/evidence" / format / "samples";
  if (!fs::is_directory(folder)) return samples;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    if (DetectCompression(bytes) == Compression::none) samples.push_back({entry.path().filename().string(), bytes});
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.name < b.name; });
  return samples;
}

// One text of about `bytes`, of all samples in turn.
std::vector<Sample> Joined(const std::vector<Sample>& samples, size_t bytes) {
  Sample whole{samples.front().name, {}};
  while (whole.bytes.size() < bytes) {
    for (const Sample& sample : samples) {
      whole.bytes += sample.bytes;
      if (!whole.bytes.empty() && whole.bytes.back() != '\n') whole.bytes += '\n';
    }
  }
  return {std::move(whole)};
}

void Measure(const Format& format, size_t bytes) {
  std::vector<Sample> samples = SamplesOf(format.name);
  std::erase_if(samples, [&](const Sample& sample) {
    const std::string_view prefix = std::string_view(sample.bytes).substr(0, kPrefixBytes);
    return sample.bytes.empty() || format.recognise(prefix, sample.name) == Recognition::no;
  });
  if (samples.empty()) {
    std::printf("%-18s no plain samples\n", std::string(format.name).c_str());
    return;
  }
  const size_t files = samples.size();
  if (format.shares_lines) samples = Joined(samples, bytes);
  size_t done = 0, understood = 0;
  const auto start = std::chrono::steady_clock::now();
  while (done < bytes) {
    for (const Sample& sample : samples) {
      Fragment fragment;
      format.read({sample.name, sample.bytes, false}, fragment);
      done += sample.bytes.size();
      understood += fragment.bytes.understood;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%-18s %3zu samples %6.0f MB %8.3f s %8.0f MB/s   understood %3.0f %%\n",
              std::string(format.name).c_str(), files, static_cast<double>(done) / 1e6, seconds,
              static_cast<double>(done) / 1e6 / seconds,
              100 * static_cast<double>(understood) / static_cast<double>(done));
}

}  // namespace
}  // namespace tacet

int main(int argc, char** argv) {
  const long megabytes = argc > 1 ? std::atol(argv[1]) : 50;
  if (megabytes < 1) {
    std::fprintf(stderr, "usage: parser_bench [MEGABYTES [FORMAT]]\n");
    return 2;
  }
  for (const tacet::Format* format : tacet::AllFormats())
    if (argc < 3 || format->name == argv[2]) tacet::Measure(*format, static_cast<size_t>(megabytes) * 1'000'000);
  return 0;
}
