// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tacet {

// Index of an input file. Inside a Fragment it is always 0; the assembly gives every file its final number.
enum class FileId : uint32_t {};

// Where a statement comes from. Born in a reader, it travels to the report unchanged.
struct SourceRef {
  FileId file{};
  uint32_t line = 0;    // counted from 1; 0 where the format has no lines
  uint64_t offset = 0;  // byte offset in the (decompressed) file
};

}  // namespace tacet
