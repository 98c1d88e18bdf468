// SPDX-License-Identifier: Apache-2.0
#include "model/network_address.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(NetworkAddress, TakesTheHostOutOfEveryForm) {
  for (const std::string_view form :
       {"10.0.0.7", "10.0.0.7<41234>", "[10.0.0.7]:41234", "10.0.0.7:29500", "::ffff:10.0.0.7"})
    EXPECT_EQ(HostPart(form), "10.0.0.7") << form;
  EXPECT_EQ(HostPart("fe80::a00:27ff:fe4e:66a1%eth0<0>"), "fe80::a00:27ff:fe4e:66a1");
  EXPECT_EQ(HostPart("[::1]:29500"), "::1");
  EXPECT_EQ(HostPart("node7:29500"), "node7");
  EXPECT_EQ(HostPart(""), "");
}

TEST(NetworkAddress, TellsWhoCanReachAnAddress) {
  for (const std::string_view address : {"127.0.0.1", "127.0.1.1<0>", "[::1]:29500", "localhost:29500"})
    EXPECT_EQ(ScopeOf(address), AddressScope::loopback) << address;
  for (const std::string_view address : {"169.254.3.1<41234>", "fe80::1%eth0<0>"})
    EXPECT_EQ(ScopeOf(address), AddressScope::link_local) << address;
  for (const std::string_view address : {"172.17.0.2<45678>", "192.168.122.1", "10.88.0.3"})
    EXPECT_EQ(ScopeOf(address), AddressScope::container) << address;
  for (const std::string_view address : {"10.0.0.7", "172.16.4.2", "192.168.1.10", "node7:29500", "fd00::12", "fe:80"})
    EXPECT_EQ(ScopeOf(address), AddressScope::unknown) << address;
}

TEST(NetworkAddress, KnowsInterfacesThatAreNotOfTheMachine) {
  for (const std::string_view name : {"docker0", "br-3f2a", "veth12ab", "virbr0", "cni0", "flannel.1", "tun0"})
    EXPECT_TRUE(IsVirtualInterface(name)) << name;
  for (const std::string_view name : {"eth0", "ens5", "ib0", "bond0", "enp6s0", "hsn0", "br0", "lo"})
    EXPECT_FALSE(IsVirtualInterface(name)) << name;
}

TEST(NetworkAddress, AnOrdinaryInterfaceWithAnAddressOfItsOwnWireIsLocalToo) {
  EXPECT_TRUE(IsOnlyLocal("eth0", "169.254.3.1"));
  EXPECT_TRUE(IsOnlyLocal("lo", "127.0.0.1"));
  EXPECT_TRUE(IsOnlyLocal("docker0", "10.9.0.1"));
  EXPECT_FALSE(IsOnlyLocal("eth0", "10.0.3.4"));
}

// A site may use 172.17.0.0/16 for its InfiniBand; Docker's bridge is never called ib0.
TEST(NetworkAddress, AnAdapterOfTheFabricIsNotLocalWhateverItsAddress) {
  EXPECT_FALSE(IsOnlyLocal("ib0", "172.17.120.71<0>"));
  EXPECT_FALSE(IsOnlyLocal("bond0", "172.17.120.71<0>"));
  EXPECT_TRUE(IsOnlyLocal("eth0", "172.17.0.2<0>"));
  EXPECT_TRUE(IsOnlyLocal("ib0", "169.254.3.1<0>"));
}

TEST(NetworkAddress, WhatIsNoHost) {
  for (const char* value : {"", " ", "/opt/env.sh", "$MASTER_ADDR", "${HOST}", "None", "tcp://10.0.0.1"})
    EXPECT_TRUE(IsNoHost(value)) << value;
  for (const char* value :
       {"node0", "10.0.0.1", "trainer-0.trainers.ml.svc", "fe80::1%eth0", "<node0>", "***", "gpu_07"})
    EXPECT_FALSE(IsNoHost(value)) << value;
}

}  // namespace
}  // namespace tacet
