// SPDX-License-Identifier: Apache-2.0
#include "base/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/unpack_stream.h"

namespace tacet {
namespace {

constexpr std::string_view kLocal("PK\x03\x04", 4), kCentral("PK\x01\x02", 4), kEnd("PK\x05\x06", 4);
constexpr std::string_view kEnd64("PK\x06\x06", 4), kLocator64("PK\x06\x07", 4);
constexpr size_t kLocalHead = 30, kCentralHead = 46, kEndHead = 22, kEnd64Head = 56, kLocatorSize = 20;
constexpr uint16_t kStored = 0, kDeflated = 8, kZstandard = 93;
constexpr uint32_t kIn64 = 0xffffffff;  // the true number stands in the extra field

// Little endian; 0 outside.
uint64_t LittleAt(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  if (at > bytes.size() || bytes.size() - at < size) return 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct ZipSizes {
  uint64_t packed = 0, unpacked = 0, offset = 0;
};

// Sizes that do not fit into 32 bits, and the time of Unix.
void ReadExtra(std::string_view extra, ZipSizes* sizes, ZipMember* member) {
  while (extra.size() >= 4) {
    const uint64_t id = LittleAt(extra, 0, 2);
    const std::string_view field = extra.substr(4, LittleAt(extra, 2, 2));
    if (id == 1) {
      size_t at = 0;
      for (uint64_t* value : {&sizes->unpacked, &sizes->packed, &sizes->offset}) {
        if (*value != kIn64 || field.size() < at + 8) continue;
        *value = LittleAt(field, at, 8);
        at += 8;
      }
    } else if (id == 0x5455 && field.size() >= 5 && (field[0] & 1) != 0) {
      member->modified_s = static_cast<int32_t>(LittleAt(field, 1, 4));
    }
    extra.remove_prefix(4 + field.size());
  }
}

// Where the packed bytes of the local header at `at` begin.
std::optional<size_t> BodyAt(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < kLocalHead || !bytes.substr(at).starts_with(kLocal)) return std::nullopt;
  const uint64_t body = at + kLocalHead + LittleAt(bytes, at + 26, 2) + LittleAt(bytes, at + 28, 2);
  return body <= bytes.size() ? std::optional<size_t>(body) : std::nullopt;
}

struct ZipDirectory {
  uint64_t at = 0;
};

// The record at the very end, with a comment of up to 64 KiB behind it.
std::optional<ZipDirectory> FindDirectory(std::string_view bytes) {
  if (bytes.size() < kEndHead) return std::nullopt;
  const size_t end = bytes.rfind(kEnd, bytes.size() - kEndHead);
  if (end == std::string_view::npos || bytes.size() - end > kEndHead + 0xffff) return std::nullopt;
  ZipDirectory directory{LittleAt(bytes, end + 16, 4)};
  if (directory.at == kIn64 && end >= kLocatorSize && bytes.substr(end - kLocatorSize).starts_with(kLocator64)) {
    const uint64_t end64 = LittleAt(bytes, end - kLocatorSize + 8, 8);
    if (end64 < bytes.size() && bytes.size() - end64 >= kEnd64Head && bytes.substr(end64).starts_with(kEnd64))
      directory.at = LittleAt(bytes, end64 + 48, 8);
  }
  const bool empty = directory.at == end;
  if (!empty && (directory.at >= end || !bytes.substr(directory.at).starts_with(kCentral))) return std::nullopt;
  return directory;
}

ZipList ListByDirectory(std::string_view bytes, uint64_t at, size_t most_members) {
  ZipList list;
  while (bytes.size() - at >= kCentralHead && bytes.substr(at).starts_with(kCentral)) {
    if (list.members.size() == most_members) {
      list.limited = true;
      break;
    }
    const uint64_t name = LittleAt(bytes, at + 28, 2), extra = LittleAt(bytes, at + 30, 2);
    const uint64_t next = at + kCentralHead + name + extra + LittleAt(bytes, at + 32, 2);
    if (next > bytes.size()) {
      list.cut = true;
      break;
    }
    ZipMember member;
    member.name = bytes.substr(at + kCentralHead, name);
    member.method = static_cast<uint16_t>(LittleAt(bytes, at + 10, 2));
    member.encrypted = (LittleAt(bytes, at + 8, 2) & 1) != 0;
    member.sum = static_cast<uint32_t>(LittleAt(bytes, at + 16, 4));
    ZipSizes sizes{LittleAt(bytes, at + 20, 4), LittleAt(bytes, at + 24, 4), LittleAt(bytes, at + 42, 4)};
    ReadExtra(bytes.substr(at + kCentralHead + name, extra), &sizes, &member);
    if (const auto body = BodyAt(bytes, sizes.offset)) {
      member.packed = bytes.substr(*body, sizes.packed);
      member.cut = member.packed.size() < sizes.packed;
    } else {
      member.lost = true;
    }
    list.members.push_back(std::move(member));
    at = next;
  }
  return list;
}

// Without the list: from one local header to the next. Where a size is told only behind the bytes, they go up to the
// next header, and the packed data knows where it ends.
ZipList ListByHeaders(std::string_view bytes, size_t most_members) {
  ZipList list;
  list.cut = true;
  for (size_t at = bytes.find(kLocal); at != std::string_view::npos;) {
    const auto body = BodyAt(bytes, at);
    const uint64_t name = LittleAt(bytes, at + 26, 2);
    if (!body || name == 0) {
      at = bytes.find(kLocal, at + 4);
      continue;
    }
    if (list.members.size() == most_members) {
      list.limited = true;
      break;
    }
    ZipMember member;
    member.name = bytes.substr(at + kLocalHead, name);
    const uint64_t flags = LittleAt(bytes, at + 6, 2);
    member.method = static_cast<uint16_t>(LittleAt(bytes, at + 8, 2));
    member.encrypted = (flags & 1) != 0;
    member.sum = static_cast<uint32_t>(LittleAt(bytes, at + 14, 4));
    ZipSizes sizes{LittleAt(bytes, at + 18, 4), LittleAt(bytes, at + 22, 4), 0};
    ReadExtra(bytes.substr(at + kLocalHead + name, *body - at - kLocalHead - name), &sizes, &member);
    member.sum_known = (flags & 8) == 0;
    if (member.sum_known) {
      member.packed = bytes.substr(*body, sizes.packed);
      member.cut = member.packed.size() < sizes.packed;
      at = bytes.find(kLocal, *body + member.packed.size());
    } else {
      at = bytes.find(kLocal, *body);
      member.packed = bytes.substr(*body, std::min(at, bytes.find(kCentral, *body)) - *body);
      // Stored bytes of unknown length have the record of their size behind them.
      if (member.method == kStored) member.packed = member.packed.substr(0, member.packed.rfind("PK\x07\x08"));
    }
    list.members.push_back(std::move(member));
  }
  return list;
}

}  // namespace

bool LooksLikeZip(std::string_view bytes) {
  return bytes.starts_with(kLocal) || (bytes.starts_with(kEnd) && bytes.size() >= kEndHead);
}

ZipList ListZip(std::string_view bytes, size_t most_members) {
  if (const auto directory = FindDirectory(bytes)) return ListByDirectory(bytes, directory->at, most_members);
  return ListByHeaders(bytes, most_members);
}

ZipContent UnpackZipMember(const ZipMember& member, uint64_t most_bytes) {
  ZipContent content;
  UnpackStream::Kind kind = UnpackStream::Kind::none;
  if (member.method == kDeflated)
    kind = UnpackStream::Kind::raw;
  else if (member.method == kZstandard)
    kind = UnpackStream::Kind::zstd;
  else if (member.method != kStored)
    content.known_method = false;
  if (!content.known_method) return content;
  UnpackStream stream(member.packed, kind, most_bytes);
  std::array<char, 1 << 16> buffer;
  while (const size_t got = stream.Read(buffer.data(), buffer.size())) content.bytes.append(buffer.data(), got);
  content.cut = stream.cut() || member.cut;
  content.limited = stream.limited();
  content.corrupt = stream.corrupt();
  if (!content.cut && !content.limited && !content.corrupt && member.sum_known)
    content.corrupt =
        ::crc32_z(0, reinterpret_cast<const Bytef*>(content.bytes.data()), content.bytes.size()) != member.sum;
  return content;
}

}  // namespace tacet
