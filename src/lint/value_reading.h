// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lint/variable_table.h"

namespace tacet {

// A number as NCCL reads it: strtoll with base 0. "true" is 0, "8M" is 8, "010" is 8, "0x10" is 16.
struct NcclNumber {
  int64_t value = 0;
  bool whole = false;         // nothing is left behind the number
  bool out_of_range = false;  // NCCL takes the default, and says so
};
NcclNumber ReadNcclNumber(std::string_view text);

// What a reader makes of a value that its writer meant otherwise; empty where they agree.
struct Misreading {
  std::string read_as;  // "0", "the default, since it is not a multiple of 32"
  std::string advice;
  std::string fails;  // "NCCL fail when it creates a communicator: ..."; then read_as only names it
  bool out_of_range = false;  // then read_as says so: "out of range: it takes 0 to 7"
  bool invalid = false;       // then read_as is what follows: "the default applies", "there is no log"
  bool found() const { return !read_as.empty(); }
};
Misreading FindMisreading(const Variable& variable, std::string_view value, ReleaseNumber nccl);

// "4MB" of a number of bytes: 4194304. Empty where it is no such value.
std::string BytesMeant(std::string_view value);

// Blanks, quotes or a carriage return that became part of the value; empty: none.
std::string StrayCharacters(std::string_view value);

}  // namespace tacet
