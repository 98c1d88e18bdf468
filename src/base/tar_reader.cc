// SPDX-License-Identifier: Apache-2.0
#include "base/tar_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kTarBlock = 512;
constexpr uint64_t kLongestHeader = 1 << 20;  // of a long name
constexpr uint64_t kLargestMember = uint64_t{1} << 50;

std::string_view FieldOf(const std::array<char, kTarBlock>& block, size_t at, size_t size) {
  const std::string_view field(block.data() + at, size);
  return field.substr(0, field.find('\0'));
}

// Octal digits, or base 256 where the first bit is set.
uint64_t NumberIn(const std::array<char, kTarBlock>& block, size_t at, size_t size) {
  if ((static_cast<unsigned char>(block[at]) & 0x80) != 0) {
    uint64_t value = 0;
    for (size_t i = at + size - 8; i < at + size; ++i) value = value << 8 | static_cast<unsigned char>(block[i]);
    return value;
  }
  std::string_view text = FieldOf(block, at, size);
  SkipBlanks(text);
  uint64_t value = 0;
  TakeNumber(text, &value, 8);
  return value;
}

bool SumFits(const std::array<char, kTarBlock>& block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  return sum == NumberIn(block, 148, 8);
}

bool HasMagic(const std::array<char, kTarBlock>& block) {
  const std::string_view magic(block.data() + 257, 6);
  return magic == std::string_view("ustar\0", 6) || magic == "ustar ";
}

// What the headers in front of a member say about it.
struct TarExtension {
  std::string name;
  std::optional<uint64_t> size;
  bool sparse = false;
};

// "27 path=some/long/name\n30 mtime=..."
void ReadPax(std::string_view records, TarExtension* out) {
  while (!records.empty()) {
    const std::string_view whole = records;
    size_t size = 0;
    if (!TakeNumber(records, &size) || size == 0 || size > whole.size() || !TakeLiteral(records, " ")) return;
    const size_t head = whole.size() - records.size();
    if (size < head) return;
    std::string_view record = whole.substr(head, size - head);
    record = record.substr(0, record.find('\n'));
    uint64_t number = 0;
    if (record.starts_with("GNU.sparse.")) out->sparse = true;
    if (TakeLiteral(record, "path=") || TakeLiteral(record, "GNU.sparse.name="))
      out->name = record;
    else if (TakeLiteral(record, "size=") && TakeNumber(record, &number))
      out->size = number;
    records = whole.substr(size);
  }
}

}  // namespace

bool TarReader::Fill(char* block, size_t size) {
  size_t got = 0;
  while (got < size) {
    const size_t part = read_(block + got, size - got);
    if (part == 0) return false;
    got += part;
  }
  return true;
}

// Memory follows what arrives, not what the header claims.
bool TarReader::Body(uint64_t size, uint64_t keep, std::string* bytes) {
  std::array<char, 1 << 16> buffer;
  uint64_t left = size + (kTarBlock - size % kTarBlock) % kTarBlock;
  uint64_t wanted = std::min(size, keep);
  while (left > 0) {
    const size_t got = read_(buffer.data(), static_cast<size_t>(std::min<uint64_t>(left, buffer.size())));
    if (got == 0) return false;
    const size_t part = static_cast<size_t>(std::min<uint64_t>(wanted, got));
    bytes->append(buffer.data(), part);
    wanted -= part;
    left -= got;
  }
  return true;
}

bool TarReader::Next(TarMember* member) {
  TarExtension extension;
  bool lost = false;
  while (true) {
    std::array<char, kTarBlock> block{};
    if (!Fill(block.data(), block.size())) {
      if (problem_.empty()) problem_ = "it ends early";
      return false;
    }
    const bool zeros = std::all_of(block.begin(), block.end(), [](char c) { return c == 0; });
    if (lost && (zeros || !HasMagic(block))) continue;
    if (zeros) {
      complete_ = true;
      return false;
    }
    const uint64_t told = NumberIn(block, 124, 12);
    if (const bool fits = SumFits(block); !fits || told > kLargestMember) {
      if (!lost) problem_ = fits ? "it claims a file of an impossible size" : "it is not a tar archive, or damaged";
      if (on_damage_ == OnDamage::stop) return false;
      if (!lost) ++damaged_;
      lost = true;
      extension = {};
      continue;
    }
    lost = false;
    const char type = block[156];
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
      std::string text;
      if (!Body(told, kLongestHeader, &text)) continue;
      if (type == 'L') extension.name = text.substr(0, text.find('\0'));
      if (type == 'x') ReadPax(text, &extension);
      continue;
    }
    const uint64_t size = std::min(extension.size.value_or(told), kLargestMember);
    *member = {};
    const std::string_view front = FieldOf(block, 345, 155);
    const bool ustar = std::memcmp(block.data() + 257, "ustar\0", 6) == 0;
    member->name = !extension.name.empty() ? extension.name
                                           : (ustar && !front.empty() ? std::string(front) + "/" : std::string()) +
                                                 std::string(FieldOf(block, 0, 100));
    member->size = size;
    member->modified_s = static_cast<int64_t>(NumberIn(block, 136, 12));
    member->plain = type == '0' || type == '\0' || type == '7';
    member->sparse = extension.sparse || type == 'S';
    // Before ustar a folder was a file whose name ends in a slash.
    member->folder = type == '5' || (member->plain && member->name.ends_with('/'));
    if (member->folder) member->plain = false;
    member->cut = !Body(size, most_bytes_, &member->bytes);
    return true;
  }
}

bool LooksLikeTar(std::string_view bytes) {
  if (bytes.size() < kTarBlock) return false;
  std::array<char, kTarBlock> block{};
  std::memcpy(block.data(), bytes.data(), kTarBlock);
  return HasMagic(block) || SumFits(block);
}

}  // namespace tacet
