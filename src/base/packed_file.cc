// SPDX-License-Identifier: Apache-2.0
#include "base/packed_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace tacet {

struct PackedFile::Inside {
  enum class Kind { plain, gzip, zstd } kind = Kind::plain;
  std::string path;
  int file = -1;
  uint64_t written = 0;
  int error = 0;
  bool finished = false;
  ZSTD_CCtx* zstd = nullptr;
  z_stream gzip{};
  std::vector<char> buffer = std::vector<char>(1 << 17);

  ~Inside() {
    if (zstd != nullptr) ZSTD_freeCCtx(zstd);
    if (kind == Kind::gzip) ::deflateEnd(&gzip);
    if (file >= 0) ::close(file);
    if (!finished && file >= 0) ::unlink(path.c_str());
  }

  bool Store(const char* bytes, size_t size) {
    while (size > 0 && error == 0) {
      const ssize_t done = ::write(file, bytes, size);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        error = done < 0 ? errno : ENOSPC;
        break;
      }
      bytes += done;
      size -= static_cast<size_t>(done);
      written += static_cast<uint64_t>(done);
    }
    return error == 0;
  }

  bool PackZstd(std::string_view bytes, bool last) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (error == 0) {
      ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
      const size_t left = ZSTD_compressStream2(zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left)) error = EIO;
      Store(buffer.data(), out.pos);
      if (last ? left == 0 : in.pos == in.size) break;
    }
    return error == 0;
  }

  bool PackGzip(std::string_view bytes, bool last) {
    gzip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    gzip.avail_in = static_cast<uInt>(bytes.size());
    int state = Z_OK;
    do {
      gzip.next_out = reinterpret_cast<Bytef*>(buffer.data());
      gzip.avail_out = static_cast<uInt>(buffer.size());
      state = ::deflate(&gzip, last ? Z_FINISH : Z_NO_FLUSH);
      Store(buffer.data(), buffer.size() - gzip.avail_out);
    } while (error == 0 && (last ? state != Z_STREAM_END : gzip.avail_in > 0 || gzip.avail_out == 0));
    return error == 0;
  }

  bool Pack(std::string_view bytes, bool last) {
    if (kind == Kind::zstd) return PackZstd(bytes, last);
    if (kind == Kind::gzip) return PackGzip(bytes, last);
    return Store(bytes.data(), bytes.size());
  }
};

PackedFile::PackedFile(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
PackedFile::~PackedFile() = default;

Result<std::unique_ptr<PackedFile>> PackedFile::Create(const std::string& path) {
  auto inside = std::make_unique<Inside>();
  inside->path = path;
  if (path.ends_with(".zst")) {
    inside->zstd = ZSTD_createCCtx();
    if (inside->zstd != nullptr) {
      inside->kind = Inside::Kind::zstd;
      ZSTD_CCtx_setParameter(inside->zstd, ZSTD_c_checksumFlag, 1);
    }
  } else if (path.ends_with(".gz") || path.ends_with(".tgz")) {
    // 16 + 15: with the head of gzip, whose time stays 0.
    if (::deflateInit2(&inside->gzip, 6, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) == Z_OK)
      inside->kind = Inside::Kind::gzip;
  }
  inside->file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (inside->file < 0) return Error{"cannot write '" + path + "': " + std::strerror(errno), ""};
  return std::unique_ptr<PackedFile>(new PackedFile(std::move(inside)));
}

bool PackedFile::Write(std::string_view bytes) {
  // Pieces that fit into zlib's counters.
  constexpr size_t kPiece = 1 << 28;
  for (; inside_->error == 0 && !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPiece)))
    inside_->Pack(bytes.substr(0, kPiece), false);
  return inside_->error == 0;
}

Result<uint64_t> PackedFile::Finish() {
  inside_->Pack({}, true);
  if (inside_->error == 0 && ::fsync(inside_->file) != 0 && errno == ENOSPC) inside_->error = errno;
  if (inside_->error != 0)
    return Error{"cannot write '" + inside_->path + "': " + std::strerror(inside_->error),
                 inside_->error == ENOSPC ? "the disk is full: choose a file on another one with -o" : ""};
  inside_->finished = true;
  return inside_->written;
}

}  // namespace tacet
