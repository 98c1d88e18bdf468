// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tacet {

// Writes a tar of plain files: ustar, with a PAX header where a name is long. Owner, mode and order say nothing about
// the machine, so that the same files give the same bytes.
class TarWriter {
 public:
  // `sink` gets the bytes; false from it ends the writing.
  explicit TarWriter(std::function<bool(std::string_view)> sink) : sink_(std::move(sink)) {}
  // False where the sink has failed.
  bool Add(const std::string& name, std::string_view bytes, int64_t modified_s);
  bool Finish();  // the two empty blocks at the end

 private:
  bool Header(const std::string& name, uint64_t size, int64_t modified_s, char type);
  bool Put(std::string_view bytes);

  std::function<bool(std::string_view)> sink_;
  bool failed_ = false;
};

}  // namespace tacet
