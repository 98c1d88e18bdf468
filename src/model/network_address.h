// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

// Who can reach an address, as far as the address itself tells.
enum class AddressScope : uint8_t {
  unknown,     // an ordinary address, or a host name: it may be reachable from anywhere
  loopback,    // the same host only: 127.0.0.0/8, ::1, "localhost"
  link_local,  // the same wire only: 169.254.0.0/16, fe80::/10
  container,   // the same host only, by default: Docker's, Podman's and libvirt's own networks
};

// "10.0.0.7" of "10.0.0.7<41234>", "[10.0.0.7]:41234", "10.0.0.7:29500", "fe80::1%eth0<0>" and "10.0.0.7".
std::string_view HostPart(std::string_view address);

AddressScope ScopeOf(std::string_view address);

// True for interfaces that a container engine, a virtual machine or a VPN makes: docker0, veth12ab, virbr0, cni0, tun0.
bool IsVirtualInterface(std::string_view name);

// True for an interface and address that other hosts can hardly reach.
bool IsOnlyLocal(std::string_view interface, std::string_view address);

// "a loopback address, which only processes on the same host can reach".
std::string_view WhyOnlyLocal(std::string_view interface, std::string_view address);

// What cannot be the name or the address of a host: nothing, a path, a variable that nobody filled in ("/opt/env.sh",
// "$MASTER_ADDR", "None"). Not "<node0>" or "***": whoever pastes a log hides names so. Without the port.
bool IsNoHost(std::string_view host);

}  // namespace tacet
