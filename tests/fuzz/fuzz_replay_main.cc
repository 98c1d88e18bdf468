// SPDX-License-Identifier: Apache-2.0
// Replays files through a fuzz target without libFuzzer: every sample whole, cut at many places, and with bytes
// flipped by a fixed generator, so that plain `ctest` under ASan and UBSan exercises every parser.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void RunOne(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

static long RunVariants(const std::string& bytes) {
  RunOne(bytes);
  long runs = 1;
  const size_t step = bytes.size() / 64 + 1;
  for (size_t cut = 0; cut < bytes.size(); cut += step, ++runs) RunOne(bytes.substr(0, cut));
  uint64_t state = 0x9e3779b97f4a7c15u ^ bytes.size();
  for (int i = 0; i < 64 && !bytes.empty(); ++i, ++runs) {
    std::string changed = bytes;
    for (int k = 0; k < 4; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      changed[(state >> 33) % changed.size()] = static_cast<char>(state >> 20);
    }
    RunOne(changed);
  }
  return runs;
}

int main(int argc, char** argv) {
  long runs = 0, files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      runs += RunVariants(std::string(std::istreambuf_iterator<char>(in), {}));
      ++files;
    }
  }
  RunOne("");
  std::printf("%ld files, %ld inputs replayed\n", files, runs + 1);
  return files == 0 ? 1 : 0;
}
