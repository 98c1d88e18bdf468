// SPDX-License-Identifier: Apache-2.0
#include "model/fragment.h"

namespace tacet {

Fragment::Fragment() = default;
Fragment::Fragment(Fragment&&) noexcept = default;
Fragment::Fragment(const Fragment&) = default;
Fragment& Fragment::operator=(Fragment&&) noexcept = default;
Fragment::~Fragment() = default;

}  // namespace tacet
