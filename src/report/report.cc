// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

namespace tacet {

Report::Report() = default;
Report::Report(const Report&) = default;
Report::Report(Report&&) noexcept = default;
Report& Report::operator=(const Report&) = default;
Report& Report::operator=(Report&&) noexcept = default;
Report::~Report() = default;

}  // namespace tacet
