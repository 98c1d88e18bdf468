// SPDX-License-Identifier: Apache-2.0
#include "base/decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

namespace tacet {
namespace {

constexpr size_t kChunk = 256 * 1024;
constexpr std::string_view kGzipMagic = "\x1f\x8b\x08";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

// pzstd and seekable zstd files hold frames of their own between those with data: 0x184D2A50 to 0x184D2A5F.
bool IsSkippableFrame(std::string_view bytes) {
  return bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 && bytes.substr(1, 3) == "\x2a\x4d\x18";
}

// Passes a chunk on, honouring the limit. False when the reading must stop.
bool Deliver(const char* data, size_t size, uint64_t max_output, DecompressOutcome& outcome,
             const std::function<bool(std::string_view)>& sink) {
  const uint64_t room = max_output - outcome.output_bytes;
  const size_t take = static_cast<size_t>(std::min<uint64_t>(size, room));
  outcome.output_bytes += take;
  if (take > 0 && !sink({data, take})) return false;
  if (take < size) {
    outcome.limited = true;
    return false;
  }
  return true;
}

DecompressOutcome Gunzip(std::string_view in, uint64_t max_output, const std::function<bool(std::string_view)>& sink,
                         const std::function<void(size_t)>& passed) {
  DecompressOutcome outcome;
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) return {.corrupt = true};
  auto buffer = std::make_unique<char[]>(kChunk);
  size_t used = 0;
  bool inside_member = true;
  while (true) {
    if (stream.avail_in == 0 && used < in.size()) {
      const size_t take = std::min<size_t>(in.size() - used, 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data() + used));
      stream.avail_in = static_cast<uInt>(take);
      used += take;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.get());
    stream.avail_out = kChunk;
    const int status = inflate(&stream, Z_NO_FLUSH);
    const size_t produced = kChunk - stream.avail_out;
    if (produced > 0 && !Deliver(buffer.get(), produced, max_output, outcome, sink)) break;
    if (passed) passed(used - stream.avail_in);
    if (status == Z_STREAM_END) {
      inside_member = false;
      const size_t left = stream.avail_in + (in.size() - used);
      if (left == 0) break;
      const std::string_view rest = in.substr(in.size() - left);
      if (DetectCompression(rest) != Compression::gzip) {
        outcome.cut = kGzipMagic.starts_with(rest);
        outcome.unread_bytes = left;
        break;
      }
      inflateReset(&stream);
      inside_member = true;
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && stream.avail_in == 0 && used == in.size() && produced == 0)) {
      outcome.cut = inside_member;
      break;
    } else if (status != Z_OK) {
      outcome.corrupt = true;
      break;
    }
  }
  inflateEnd(&stream);
  return outcome;
}

DecompressOutcome Unzstd(std::string_view in, uint64_t max_output, const std::function<bool(std::string_view)>& sink,
                         const std::function<void(size_t)>& passed) {
  DecompressOutcome outcome;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  // A hostile frame header may ask for a window of gigabytes; 128 MiB is what `zstd -19 --long` needs.
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, 27);
  auto buffer = std::make_unique<char[]>(kChunk);
  ZSTD_inBuffer input{in.data(), 0, 0};
  size_t expects = ZSTD_initDStream(stream.get());
  while (true) {
    // No more than it asks for: an error then costs the block it stands in, not all that the call had unpacked before
    // it.
    input.size = std::min(in.size(), input.pos + std::max<size_t>(expects, 1));
    ZSTD_outBuffer output{buffer.get(), kChunk, 0};
    const size_t before = input.pos;
    expects = ZSTD_decompressStream(stream.get(), &output, &input);
    if (ZSTD_isError(expects)) {
      outcome.corrupt = true;
      outcome.unread_bytes = in.size() - before;
      break;
    }
    if (output.pos > 0 && !Deliver(buffer.get(), output.pos, max_output, outcome, sink)) break;
    if (passed) passed(input.pos);
    const std::string_view rest = in.substr(input.pos);
    if (rest.empty() && output.pos < kChunk) {
      outcome.cut = expects != 0;
      break;
    }
    if (expects == 0 && !rest.empty() && DetectCompression(rest) != Compression::zstd) {
      outcome.cut = kZstdMagic.starts_with(rest);
      outcome.unread_bytes = rest.size();
      break;
    }
  }
  return outcome;
}

}  // namespace

Compression DetectCompression(std::string_view bytes) {
  if (bytes.starts_with(kGzipMagic)) return Compression::gzip;
  if (bytes.starts_with(kZstdMagic) || IsSkippableFrame(bytes)) return Compression::zstd;
  return Compression::none;
}

DecompressOutcome Decompress(std::string_view compressed, Compression kind, uint64_t max_output,
                             const std::function<bool(std::string_view)>& sink,
                             const std::function<void(size_t)>& passed) {
  if (kind == Compression::gzip) return Gunzip(compressed, max_output, sink, passed);
  if (kind == Compression::zstd) return Unzstd(compressed, max_output, sink, passed);
  DecompressOutcome outcome;
  Deliver(compressed.data(), compressed.size(), max_output, outcome, sink);
  return outcome;
}

DecompressOutcome DecompressAll(std::string_view compressed, Compression kind, uint64_t max_output, std::string* out) {
  return Decompress(compressed, kind, max_output, [&](std::string_view chunk) {
    out->append(chunk);
    return true;
  });
}

}  // namespace tacet
