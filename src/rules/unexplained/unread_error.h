// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/diagnosis.h"

namespace tacet {

// A line that reports an error in words that no reader knows (evidence/told/told_words.h), unless the job went on
// behind it. Where `end` says how the job ended, only one that stands before it.
const Event* UnreadErrorBefore(const Incident& incident, const Event* end);

// Its words, as long as a headline may be.
std::string UnreadErrorWords(const Event& error);

// Better than to say that nothing was found: the line is quoted, although nobody knows what it means. False where there
// is none.
void QuoteBesideAnEnd(const Case& facts, Diagnosis& diagnosis);
bool QuoteUnreadError(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
