// SPDX-License-Identifier: Apache-2.0
// Messages of file systems over the network: the server is gone, the server is back.
#include <algorithm>

#include "base/text_scan.h"
#include "evidence/kernel_log/kernel_log_parse.h"

namespace tacet {
namespace {

using Kind = KernelRecord::Kind;

// Up to the first of `ends`.
std::string_view UpTo(std::string_view text, std::string_view ends) {
  return text.substr(0, std::min({text.find_first_of(ends), text.size(), size_t{128}}));
}

// Lustre: work-OST0003-osc-ff11: Connection to work-OST0003 (at 10.1.0.3@o2ib) was lost; in progress operations ...
// Lustre: work-OST0003-osc-ff11: Connection restored to work-OST0003 (at 10.1.0.3@o2ib)
// LustreError: 167-0: work-MDT0000-mdc-ff11: This client was evicted by work-MDT0000; in progress operations ...
// LustreError: 11-0: work-OST0012-osc-ff11: operation ost_read to node 10.1.1.1@o2ib failed: rc = -107
KernelMessage ParseLustre(std::string_view message, KernelRecord* out) {
  if (!message.starts_with("Lustre")) return KernelMessage::nothing;
  out->cgroup = "Lustre";
  if (auto failed = After(message, ": operation "); failed && Contains(*failed, " to node ")) {
    // ENOTCONN, ETIMEDOUT, EIO, ENODEV, EHOSTUNREACH: the server cannot be reached.
    const auto code = IntAfter(*failed, "failed: rc = ");
    if (!code ||
        std::string_view(" -107 -110 -5 -19 -113 ").find(' ' + std::to_string(*code) + ' ') == std::string_view::npos)
      return KernelMessage::context;
    const size_t client = std::min(message.find("-osc-"), message.find("-mdc-"));
    const size_t begin = client == std::string_view::npos ? client : message.rfind(' ', client);
    out->kind = Kind::storage_lost;
    out->value = 0;
    if (begin != std::string_view::npos)
      out->subject = message.substr(begin + 1, std::min(client - begin - 1, size_t{128}));
    if (const auto node = After(*failed, " to node ")) out->process = UpTo(*node, " ");
    return out->subject.empty() ? KernelMessage::context : KernelMessage::record;
  }
  const auto lost = After(message, ": Connection to "), back = After(message, ": Connection restored to "),
             evicted = After(message, ": This client was evicted by ");
  if (!back && !evicted && (!lost || !Contains(*lost, " was lost"))) return KernelMessage::context;
  out->kind = back ? Kind::storage_back : Kind::storage_lost;
  std::string_view rest = back ? *back : evicted ? *evicted : *lost;
  TakeLiteral(rest, "service ");
  out->subject = UpTo(rest, " ;,");
  if (const auto address = After(rest, "(at ")) out->process = UpTo(*address, ")");
  // An eviction takes away what was not written yet; a lost connection only makes its users wait.
  if (!back) out->value = evicted ? 1 : 0;
  return out->subject.empty() ? KernelMessage::context : KernelMessage::record;
}

// nfs: server nas01 not responding, still trying
// nfs: server nas01 not responding, timed out
// nfs: server nas01 OK
KernelMessage ParseNfs(std::string_view message, KernelRecord* out) {
  std::string_view rest = message;
  if (!TakeLiteral(rest, "nfs: server ")) return KernelMessage::nothing;
  out->cgroup = "NFS";
  out->subject = TakeWord(rest);
  const bool back = Trim(rest) == "OK";
  if (!back && !Contains(rest, "not responding")) return KernelMessage::context;
  out->kind = back ? Kind::storage_back : Kind::storage_lost;
  if (!back) out->value = Contains(rest, "timed out") ? 1 : 0;
  return KernelMessage::record;
}

// ceph: mds0 hung
// ceph: [2f8c1a04 411]: mds0 came back
KernelMessage ParseCeph(std::string_view message, KernelRecord* out) {
  if (!message.starts_with("ceph: ")) return KernelMessage::nothing;
  const size_t at = message.find("mds");
  if (at == std::string_view::npos) return KernelMessage::nothing;
  out->cgroup = "Ceph";
  std::string_view rest = message.substr(at);
  out->subject = TakeWord(rest);
  rest = Trim(rest);
  const bool back = rest.starts_with("came back") || rest.starts_with("recovery completed");
  if (!back && !rest.starts_with("hung")) return KernelMessage::context;
  out->kind = back ? Kind::storage_back : Kind::storage_lost;
  if (!back) out->value = 0;
  return KernelMessage::record;
}

}  // namespace

KernelMessage ParseStorageMessage(std::string_view message, KernelRecord* out) {
  for (const auto parse : {ParseLustre, ParseNfs, ParseCeph}) {
    *out = {};
    out->text = message;
    if (const KernelMessage answer = parse(message, out); answer != KernelMessage::nothing) return answer;
  }
  *out = {};
  return KernelMessage::nothing;
}

}  // namespace tacet
