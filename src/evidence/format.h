// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/fragment.h"

namespace tacet {

enum class Recognition { no, maybe, yes };

// One file handed to a format: bytes are decompressed, and stay valid only during the call.
struct FileView {
  std::string_view path;  // relative to the argument, for messages and for ranks in names
  std::string_view bytes;
  bool cut = false;  // decompression ended early: the last record may be incomplete
  // The bytes are a read-only mapping of the file: a reader that goes through them once may give pages back behind
  // itself.
  bool mapped = false;
};

// How many bytes Recognise gets at the most.
inline constexpr size_t kPrefixBytes = 64 * 1024;

// One evidence format. A folder src/evidence/X exports `extern const Format kXFormat;` from X_format.cc.
struct Format {
  std::string_view name;
  std::string_view description;  // one line for `tacet formats`: what writes it, how to capture it
  Recognition (*recognise)(std::string_view prefix, std::string_view filename);
  // Reads one file into `out`. Called for several files at once from several threads; must not throw, must fill
  // out.bytes so that it adds up, and sets SourceRef.file to FileId{0}.
  void (*read)(const FileView& file, Fragment& out);
  // A line log may share its file with other line logs: a job's stdout holds NCCL's lines and PyTorch's.
  bool shares_lines = false;
  // Reads the raw, possibly compressed bytes as a stream, for formats whose files do not fit into memory.
  void (*read_stream)(const FileView& file, Fragment& out) = nullptr;
  // True where every line of `text` is this format's own beyond doubt, so that nobody else is asked about it. Much
  // cheaper than recognising: of thousands of long logs, asking every format costs more than reading.
  bool (*owns_all)(std::string_view text) = nullptr;
};

}  // namespace tacet
