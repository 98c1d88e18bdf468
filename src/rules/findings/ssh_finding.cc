// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/ssh_finding.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_scan.h"

namespace tacet {

// DeepSpeed's and other launchers start the processes of another node over ssh: neither NCCL nor its ports have a part
// in it.
bool IsOfSsh(const Event* event) {
  return event->kind == EventKind::store_unreachable && event->As<StoreUnreachable>().how != Unreachable::store;
}

// "node1, node2 and 14 more"
static std::string HostList(const std::vector<std::string>& hosts) {
  constexpr size_t kMost = 4;
  std::string list;
  for (size_t i = 0; i < std::min(hosts.size(), kMost); ++i) {
    const bool last = i + 1 == hosts.size();
    list += (i == 0 ? "" : last ? " and " : ", ") + hosts[i];
  }
  return list + (hosts.size() > kMost ? " and " + std::to_string(hosts.size() - kMost) + " more" : "");
}

// The launcher hands "node7:4" on as a name: it does not know this way to write slots.
static void TellSlots(const std::string& host, Finding& finding) {
  const std::string name = host.substr(0, host.find(':'));
  finding.headline = "the launcher gave ssh '" + host +
                     "' as a host name: this mpirun does not split a host from its number of slots, and nothing was "
                     "started";
  finding.fix = {
      "Check which mpirun is found (which mpirun; mpirun --version): host:slots is Open MPI's way to write them; "
      "MPICH, "
      "Intel MPI and old releases of Open MPI have their own.",
      "Write the slots in a hostfile ('" + name + " slots=" + host.substr(host.find(':') + 1) +
          "'), or install the MPI that the launcher expects.",
      "The name itself is not at fault: do not change DNS or /etc/hosts."};
}

// "port 2222: Connection refused": the port where it is not ssh's own, and the way to try the same again.
static int64_t OddSshPort(const StoreUnreachable& told) {
  std::string_view words = told.last_try;
  int64_t port = 0;
  if (!words.starts_with("port ")) return 0;
  words.remove_prefix(5);
  return TakeNumber(words, &port) && port > 0 && port < 65536 && port != 22 ? port : 0;
}

void TellSsh(const std::vector<const Event*>& events, Finding& finding) {
  const auto ssh = std::find_if(events.begin(), events.end(), IsOfSsh);
  if (ssh == events.end()) return;
  const auto& told = (*ssh)->As<StoreUnreachable>();
  std::vector<std::string> hosts;
  for (const Event* event : events)
    if (const auto& one = event->As<StoreUnreachable>(); IsOfSsh(event) && one.how == told.how && !one.address.empty())
      if (std::find(hosts.begin(), hosts.end(), one.address) == hosts.end()) hosts.push_back(one.address);
  finding.confidence = Confidence::likely;  // ssh itself tells it
  finding.status = Status::crash;           // no process was started
  for (EvidenceItem& item : finding.evidence) item.says = "ssh cannot start a process there";
  if (told.how == Unreachable::ssh_slots) return TellSlots(told.address, finding);
  const std::string host = hosts.empty() ? "another node" : HostList(hosts);
  const std::string first = hosts.empty() ? "NODE" : hosts.front();
  const bool unknown = told.how == Unreachable::ssh_unknown_host;
  finding.headline = unknown ? "the launcher cannot start processes on " + host + ": ssh cannot resolve the " +
                                   (hosts.size() > 1 ? "names" : "name")
                             : "the launcher cannot start processes on " + host + ": ssh to " +
                                   (hosts.size() > 1 ? "them" : "it") + " fails" +
                                   (told.last_try.empty() ? "" : " (" + told.last_try + ")");
  const int64_t port = OddSshPort(told);
  const std::string login = port > 0 ? "ssh -p " + std::to_string(port) + " " : "ssh ";
  finding.fix = {
      unknown ? "On the node that starts the job: getent hosts " + first +
                    "; correct the name in the hostfile, or add it to DNS or /etc/hosts."
              : "On the node that starts the job: " + login + first + " hostname; it must work without a password." +
                    (port > 0 ? " sshd must listen on that port there, in the same container (ss -ltn)." : ""),
      "In containers the host's names and keys are not known: use addresses, or mount ~/.ssh and /etc/hosts. In "
      "Kubernetes a pod's name resolves once its service exists and the pod is ready: let the launcher wait for it.",
      "On a single node leave the hostfile out, so that the launcher needs no ssh."};
}

}  // namespace tacet
