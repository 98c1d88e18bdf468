// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"

namespace tacet {

// No limit was reached in the lines; that the job hangs is said in the text around them. Settles the headline, before
// the open finding is made of it, ...
void SettleToldHang(const Case& facts, const Event& told, Diagnosis& diagnosis);
// ... and gives that finding, the first, the steps and the evidence that fit: of a data loader, of TensorFlow, of GPUs
// that wait. What else was found stays below it.
void FinishToldHang(const Case& facts, const Event& told, Diagnosis& diagnosis);

}  // namespace tacet
