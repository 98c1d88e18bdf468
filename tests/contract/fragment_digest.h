// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/fragment.h"

namespace tacet {

// What a fragment holds, as text: two readings of the same bytes must give the same.
std::string Digest(const Fragment& fragment);

// Empty, or the first id, time or place in the fragment that points outside of it.
std::string FindBrokenReference(const Fragment& fragment, size_t file_bytes);

// Empty, or how the accounting fails to add up.
std::string FindAccountingError(const Accounting& bytes, size_t file_bytes);

}  // namespace tacet
