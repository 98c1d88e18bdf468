// SPDX-License-Identifier: Apache-2.0
#include "evidence/kernel_log/kernel_log_parse.h"
#include "model/events/site_messages.h"

namespace tacet {

KernelMessage ParseSiteMessage(std::string_view message, KernelRecord* record) {
  const SiteMatch match = ClassifySiteMessage(message);
  if (!match.message) return KernelMessage::nothing;
  *record = {};
  record->kind = KernelRecord::Kind::site_message;
  record->text = message;
  record->module = match.message->id;
  // A part of the message itself, which lives as long as the text does.
  if (const size_t at = message.find(match.subject); !match.subject.empty() && at != std::string_view::npos)
    record->subject = message.substr(at, match.subject.size());
  return KernelMessage::record;
}

}  // namespace tacet
