// SPDX-License-Identifier: Apache-2.0
#include "model/network_address.h"

#include <algorithm>

namespace tacet {

std::string_view HostPart(std::string_view address) {
  if (address.starts_with('[')) {
    address.remove_prefix(1);
    return address.substr(0, address.find(']'));
  }
  address = address.substr(0, address.find('<'));
  address = address.substr(0, address.find('%'));
  // One colon stands before a port, several belong to an IPv6 address.
  if (std::count(address.begin(), address.end(), ':') == 1) address = address.substr(0, address.find(':'));
  if (address.starts_with("::ffff:")) address.remove_prefix(7);
  return address;
}

AddressScope ScopeOf(std::string_view address) {
  const std::string_view host = HostPart(address);
  if (host.starts_with("127.") || host == "::1" || host == "localhost") return AddressScope::loopback;
  if (host.starts_with("169.254.")) return AddressScope::link_local;
  if (host.size() > 4 && (host.starts_with("fe80:") || host.starts_with("FE80:"))) return AddressScope::link_local;
  // The defaults of Docker's bridge, of Podman's, and of libvirt's NAT network.
  for (const std::string_view network : {"172.17.", "10.88.", "192.168.122."})
    if (host.starts_with(network)) return AddressScope::container;
  return AddressScope::unknown;
}

bool IsVirtualInterface(std::string_view name) {
  static constexpr std::string_view kPrefixes[] = {
      "docker", "br-", "veth", "virbr",  "vnet", "cni",   "flannel", "cali",    "tunl",  "cilium", "lxc",
      "lxdbr",  "tun", "tap",  "podman", "kube", "weave", "dummy",   "nerdctl", "vmnet", "wg",     "tailscale"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// An adapter of InfiniBand, of Slingshot, or several in one: no bridge for containers has such a name.
static bool IsFabricInterface(std::string_view name) {
  static constexpr std::string_view kPrefixes[] = {"ib", "bond", "hsn", "opa"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool IsOnlyLocal(std::string_view interface, std::string_view address) {
  if (interface == "lo" || IsVirtualInterface(interface)) return true;
  const AddressScope scope = ScopeOf(address);
  if (scope == AddressScope::container && IsFabricInterface(interface)) return false;
  return scope != AddressScope::unknown;
}

std::string_view WhyOnlyLocal(std::string_view interface, std::string_view address) {
  switch (ScopeOf(address)) {
    case AddressScope::loopback: return "a loopback address, which only processes on the same host can reach";
    case AddressScope::link_local: return "a link-local address, which hosts on another subnet cannot reach";
    case AddressScope::container:
      return "an address of the host's own container or VM network, which other hosts cannot reach";
    case AddressScope::unknown: break;
  }
  if (interface == "lo") return "the loopback interface, which only processes on the same host can reach";
  return IsVirtualInterface(interface) ? "a virtual interface, which other hosts usually cannot reach"
                                       : "an address that other hosts may not be able to reach";
}

bool IsNoHost(std::string_view host) {
  while (host.starts_with(' ')) host.remove_prefix(1);
  while (host.ends_with(' ')) host.remove_suffix(1);
  if (host.find_first_of("/\\$") != std::string_view::npos) return true;
  for (const std::string_view unset : {"", "None", "none", "null", "nil", "NULL", "undefined", "MASTER_ADDR"})
    if (host == unset) return true;
  return false;
}

}  // namespace tacet
