// SPDX-License-Identifier: Apache-2.0
#include "rules/first_end.h"

namespace tacet {

bool EndedBeforeTimeouts(const Case& facts, const Event& error) {
  const Event* timeout = facts.analyses.outcome.first_timeout;
  return timeout && CameBefore(error, *timeout);
}

}  // namespace tacet
