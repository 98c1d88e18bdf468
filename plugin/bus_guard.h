// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tacet::plugin {

// A box is a mapped file, so that it outlives its process; whoever may write to the file may also cut it, and the next
// store into what is gone raises SIGBUS. From here on that signal, for an address inside the box and no other, puts
// plain memory in the file's place and lets the store go on: the record ends, the job does not. All other bus errors go
// to whoever handled them before. The event path pays nothing.
// `memory` begins with a header that is filled in.
void GuardBox(void* memory, uint64_t bytes);

// True once the file was cut and the box is memory of this process only.
bool IsBoxCut();

}  // namespace tacet::plugin
