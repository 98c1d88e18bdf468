// SPDX-License-Identifier: Apache-2.0
#include "sample_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ostream>

#include "base/decompress.h"
#include "evidence/registry.h"

namespace tacet {
namespace {

std::string ReadWhole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const Compression compression = DetectCompression(bytes);
  if (compression == Compression::none) return bytes;
  std::string plain;
  DecompressAll(bytes, compression, uint64_t{1} << 28, &plain);
  return plain;
}

std::vector<SampleFile> FindSamples() {
  std::vector<SampleFile> samples;
  for (const Format* format : AllFormats()) {
    const auto folder = FolderOf(*format) / "samples";
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file())
        samples.push_back({format, std::filesystem::relative(entry.path(), folder).string(), ReadWhole(entry.path())});
  }
  std::sort(samples.begin(), samples.end(), [](const SampleFile& a, const SampleFile& b) {
    return std::pair(a.format->name, a.name) < std::pair(b.format->name, b.name);
  });
  return samples;
}

}  // namespace

std::filesystem::path FolderOf(const Format& format) {
  std::string name(format.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return std::filesystem::path(TACET_SOURCE_DIR) / "src" / "evidence" / name;
}

std::ostream& operator<<(std::ostream& out, const SampleFile& sample) {
  return out << sample.format->name << "/samples/" << sample.name;
}

const std::vector<SampleFile>& AllSamples() {
  static const std::vector<SampleFile> samples = FindSamples();
  return samples;
}

std::string TestName(const SampleFile& sample) {
  std::string name = std::string(sample.format->name) + "_" + sample.name;
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

Fragment ReadWith(const Format& format, std::string_view path, std::string_view bytes, bool cut) {
  Fragment fragment;
  fragment.bytes.total = bytes.size();
  format.read({path, bytes, cut}, fragment);
  return fragment;
}

}  // namespace tacet
