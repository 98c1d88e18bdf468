// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/diagnosis.h"
#include "rules/rule.h"

namespace tacet {

// What is said of threads of XLA (JAX, TensorFlow) that wait for others: PyTorch's tools do not help there.
// "an XLA thread has waited 10 s in 'initialize clique' (16 devices); 8 threads are expected, and not all have
// arrived"
std::string XlaWaitWords(const Event& wait);
std::string XlaProof(const Event& wait);
std::vector<std::string> XlaSteps(const Event& wait);

// The rest of the sentence of a hang that XLA reports, and what to ask for.
void SettleXlaWait(const Event& wait, Diagnosis& diagnosis);

// Nothing failed, but XLA waited, or compiled, for long: a note. False where it did not.
bool QuoteSlowXla(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
