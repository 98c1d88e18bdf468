// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

inline constexpr int64_t kKernelTimeUnknown = INT64_MIN;

// What stands before the kernel's own words on a line.
struct KernelLine {
  enum class Shape : uint8_t {
    bare,    // nothing: dmesg -t, or not a kernel log at all
    loose,   // "[12.345] ": other programs write that too
    kernel,  // dmesg's or the journal's form
    other,   // the journal's line of another program
  };
  Shape shape = Shape::bare;
  int64_t wall_ns = kKernelTimeUnknown;  // UTC where the zone is written, else the writer's local clock
  int32_t clock_s = -1;                  // month and day (1115) in days, and the time of day, where no year is written
  std::string_view host;
  std::string_view message;
};

KernelLine ParseKernelLine(std::string_view line);

}  // namespace tacet
