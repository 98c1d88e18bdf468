// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"

namespace tacet {

// An uncaught exception ended a thread, its process went on without it, and later the job hung: what that thread should
// have done is the likely reason. Adds it to a verdict that knows no other cause.
void TellThreadBeforeHang(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
