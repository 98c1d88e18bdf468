// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tacet {

// What a message of the programs around a job means for it: of the kernel and its drivers, of schedulers, container
// runtimes, file systems, and of the tools of GPUs and networks.
enum class SiteRole : uint8_t {
  ended,     // a process or the job was ended by it
  refused,   // nothing was started
  end_only,  // it says how something ended or did not start; another line says why
  stalled,   // whoever uses it waits
  degraded,  // something is out of service, or works less well
  corrupt,   // data is not what it should be
  pending,   // the job waits for its resources
  tool,      // a tool could not do its work, which says nothing of the job
  harmless,  // healthy hosts and jobs print it too
};

struct SiteMessage {
  std::string_view id;
  std::string_view cause;  // of the rules; empty: none of them fits
  SiteRole role = SiteRole::tool;
  std::string_view sentence;  // what it means, without a full stop; "{a GPU|GPU %}": without and with its subject
  std::string_view steps[3];  // what to do, most useful first; empty: no more
  std::string_view cleared_by = {};  // a message after which it is over
};

struct SiteMatch {
  const SiteMessage* message = nullptr;
  std::string subject;  // "0000:5e:00.0", "gpu18"; empty: the line names none
};

std::span<const SiteMessage> AllSiteMessages();
// nullptr for an unknown id.
const SiteMessage* FindSiteMessage(std::string_view id);
// Which one a line is; no message: none of these.
SiteMatch ClassifySiteMessage(std::string_view line);
// "the network adapter 0000:5e:00.0 failed"
std::string SiteSentence(const SiteMessage& message, std::string_view subject);

}  // namespace tacet
