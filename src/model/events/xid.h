// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tacet {

// Who is to blame for an Xid, the number under which NVIDIA's driver reports a GPU error to the kernel log.
enum class XidOrigin : uint8_t {
  application,  // the program did something the GPU does not allow
  hardware,     // GPU, memory, NVLink, PCIe, power
  driver,       // driver or firmware of the GPU
  either,       // application or hardware: the rest of the log decides
  consequence,  // written because something else ended the process or the channel
};

struct XidMeaning {
  int32_t code = 0;
  std::string_view name;     // "GPU has fallen off the bus"
  std::string_view meaning;  // one or two sentences
  XidOrigin origin = XidOrigin::either;
  bool ends_process = true;  // a process that used the GPU cannot go on
  std::string_view advice;   // what to do
};

// Null for a number that has no entry.
const XidMeaning* FindXid(int64_t code);
std::span<const XidMeaning> AllXids();  // sorted by code

std::string_view Name(XidOrigin origin);

}  // namespace tacet
