// SPDX-License-Identifier: Apache-2.0
#include "base/tar_writer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace tacet {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kLongestTarName = 100;

void PutOctal(char* field, size_t width, uint64_t value) {
  std::snprintf(field, width, "%0*llo", static_cast<int>(width - 1), static_cast<unsigned long long>(value));
}

// "27 path=some/long/name\n": the number counts itself.
std::string PaxRecord(const std::string& key, const std::string& value) {
  const size_t plain = key.size() + value.size() + 3;
  size_t whole = plain + std::to_string(plain).size();
  whole = plain + std::to_string(whole).size();
  return std::to_string(whole) + " " + key + "=" + value + "\n";
}

}  // namespace

bool TarWriter::Put(std::string_view bytes) {
  if (!failed_ && !bytes.empty()) failed_ = !sink_(bytes);
  return !failed_;
}

bool TarWriter::Header(const std::string& name, uint64_t size, int64_t modified_s, char type) {
  std::array<char, kBlock> block{};
  std::memcpy(block.data(), name.data(), std::min(name.size(), kLongestTarName));
  PutOctal(block.data() + 100, 8, 0644);
  PutOctal(block.data() + 108, 8, 0);
  PutOctal(block.data() + 116, 8, 0);
  PutOctal(block.data() + 124, 12, size);
  PutOctal(block.data() + 136, 12, static_cast<uint64_t>(std::clamp<int64_t>(modified_s, 0, 077777777777)));
  std::memset(block.data() + 148, ' ', 8);
  block[156] = type;
  std::memcpy(block.data() + 257,
              "ustar\0"
              "00",
              8);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  std::snprintf(block.data() + 148, 8, "%06o", sum);
  block[155] = ' ';
  return Put({block.data(), block.size()});
}

bool TarWriter::Add(const std::string& name, std::string_view bytes, int64_t modified_s) {
  static constexpr char kZeros[kBlock] = {};
  const auto pad = [&](size_t size) { return Put({kZeros, (kBlock - size % kBlock) % kBlock}); };
  if (name.size() > kLongestTarName) {
    const std::string record = PaxRecord("path", name);
    Header("long-name", record.size(), modified_s, 'x');
    Put(record);
    pad(record.size());
  }
  Header(name, bytes.size(), modified_s, '0');
  Put(bytes);
  return pad(bytes.size());
}

bool TarWriter::Finish() {
  static constexpr char kZeros[2 * kBlock] = {};
  return Put({kZeros, sizeof kZeros});
}

}  // namespace tacet
