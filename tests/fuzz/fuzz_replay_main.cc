// SPDX-License-Identifier: Apache-2.0
// Replays files through a fuzz target without libFuzzer: every sample whole, cut at many places, and with bytes
// flipped by a fixed generator, so that plain `ctest` under ASan and UBSan exercises every parser.
// usage: X_fuzz [--seconds S] [--seed N] FOLDER...
//   --seconds S  instead goes on for so long with cuts, flips, repeats and joints of samples that differ from run to
//   run;
//                --seed N, as printed, gives the same ones again
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Clock = std::chrono::steady_clock;

class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  size_t Below(size_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return limit == 0 ? 0 : static_cast<size_t>(state_ >> 33) % limit;
  }

 private:
  uint64_t state_;
};

void RunOne(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

long RunVariants(const std::string& bytes) {
  RunOne(bytes);
  long runs = 1;
  const size_t step = bytes.size() / 64 + 1;
  for (size_t cut = 0; cut < bytes.size(); cut += step, ++runs) RunOne(bytes.substr(0, cut));
  Generator generator(0x9e3779b97f4a7c15u ^ bytes.size());
  for (int i = 0; i < 64 && !bytes.empty(); ++i, ++runs) {
    std::string changed = bytes;
    for (int k = 0; k < 4; ++k) changed[generator.Below(changed.size())] = static_cast<char>(generator.Below(256));
    RunOne(changed);
  }
  return runs;
}

// One change of a kind that logs and dumps meet: cut, overwritten, repeated, joined with another file.
void Change(std::string& bytes, const std::vector<std::string>& samples, Generator& generator) {
  const size_t at = generator.Below(bytes.size() + 1), length = generator.Below(64);
  switch (generator.Below(6)) {
    case 0: bytes.resize(at); break;
    case 1: bytes.erase(0, at); break;
    case 2: bytes.erase(at, length); break;
    case 3: bytes.insert(at, bytes.substr(generator.Below(bytes.size() + 1), length)); break;
    case 4: {
      const std::string& other = samples[generator.Below(samples.size())];
      bytes.insert(at, other.substr(generator.Below(other.size() + 1), length * 16));
      break;
    }
    default:
      for (size_t k = 0; k < length && !bytes.empty(); ++k)
        bytes[generator.Below(bytes.size())] = static_cast<char>(generator.Below(256));
  }
}

long RunChanges(const std::vector<std::string>& samples, double seconds, uint64_t seed) {
  constexpr size_t kLongest = 1 << 16;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Generator generator(seed);
  long runs = 0;
  for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); Clock::now() < end; ++runs) {
    std::string bytes = samples[generator.Below(samples.size())].substr(0, kLongest);
    for (size_t changes = 1 + generator.Below(6); changes > 0; --changes) Change(bytes, samples, generator);
    RunOne(bytes);
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  long runs = 0;
  double seconds = 0;
  auto seed = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
  std::vector<std::string> samples;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      seconds = std::strtod(argv[++i], nullptr);
      continue;
    }
    if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      samples.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  for (const std::string& bytes : samples)
    if (seconds == 0) runs += RunVariants(bytes);
  RunOne("");
  if (!samples.empty() && seconds > 0) runs += RunChanges(samples, seconds, seed);
  std::printf("%zu files, %ld inputs replayed\n", samples.size(), runs + 1);
  return samples.empty() ? 1 : 0;
}
