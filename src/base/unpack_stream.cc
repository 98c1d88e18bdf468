// SPDX-License-Identifier: Apache-2.0
#include "base/unpack_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace tacet {

struct UnpackStream::Inside {
  z_stream zlib{};
  bool zlib_ready = false;
  ZSTD_DStream* zstd = nullptr;

  ~Inside() {
    if (zlib_ready) ::inflateEnd(&zlib);
    if (zstd != nullptr) ZSTD_freeDStream(zstd);
  }
};

UnpackStream::Kind UnpackStream::KindOf(Compression compression) {
  if (compression == Compression::gzip) return Kind::gzip;
  return compression == Compression::zstd ? Kind::zstd : Kind::none;
}

UnpackStream::UnpackStream(std::string_view bytes, Kind kind, uint64_t most_output)
    : rest_(bytes), kind_(kind), most_output_(most_output), state_(std::make_unique<Inside>()) {
  if (kind == Kind::zstd) {
    state_->zstd = ZSTD_createDStream();
    corrupt_ = state_->zstd == nullptr;
  } else if (kind != Kind::none) {
    state_->zlib_ready = ::inflateInit2(&state_->zlib, kind == Kind::raw ? -15 : 15 + 16) == Z_OK;
    corrupt_ = !state_->zlib_ready;
  }
  inside_ = kind != Kind::none;
}

UnpackStream::~UnpackStream() = default;

size_t UnpackStream::Inflate(char* buffer, size_t size) {
  z_stream& zlib = state_->zlib;
  const size_t given = std::min<size_t>(rest_.size(), size_t{1} << 30);
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
  zlib.avail_in = static_cast<uInt>(given);
  zlib.next_out = reinterpret_cast<Bytef*>(buffer);
  zlib.avail_out = static_cast<uInt>(size);
  const int status = ::inflate(&zlib, Z_NO_FLUSH);
  rest_.remove_prefix(given - zlib.avail_in);
  if (status == Z_STREAM_END) {
    inside_ = kind_ == Kind::gzip && DetectCompression(rest_) == Compression::gzip;
    done_ = !inside_;
    if (inside_) ::inflateReset(&zlib);
  } else if (status != Z_OK && status != Z_BUF_ERROR) {
    corrupt_ = true;
  }
  return size - zlib.avail_out;
}

size_t UnpackStream::Unzstd(char* buffer, size_t size) {
  ZSTD_inBuffer in{rest_.data(), rest_.size(), 0};
  ZSTD_outBuffer out{buffer, size, 0};
  const size_t left = ZSTD_decompressStream(state_->zstd, &out, &in);
  rest_.remove_prefix(in.pos);
  if (ZSTD_isError(left)) corrupt_ = true;
  inside_ = left != 0;
  done_ = left == 0 && rest_.empty();
  return out.pos;
}

size_t UnpackStream::Unpack(char* buffer, size_t size) {
  if (kind_ == Kind::none) {
    const size_t part = std::min(size, rest_.size());
    std::memcpy(buffer, rest_.data(), part);
    rest_.remove_prefix(part);
    return part;
  }
  while (!done_ && !corrupt_) {
    const size_t before = rest_.size();
    const size_t got = kind_ == Kind::zstd ? Unzstd(buffer, size) : Inflate(buffer, size);
    if (got > 0) return got;
    if (rest_.size() == before && !done_) {  // nothing in, nothing out
      cut_ = inside_ && !corrupt_;
      done_ = true;
    }
  }
  return 0;
}

size_t UnpackStream::Read(char* buffer, size_t size) {
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>({size, most_output_ - output_bytes_, 1u << 30}));
  if (wanted == 0) {
    char more = 0;
    limited_ = limited_ || (size > 0 && Unpack(&more, 1) > 0);
    return 0;
  }
  const size_t got = Unpack(buffer, wanted);
  output_bytes_ += got;
  return got;
}

}  // namespace tacet
