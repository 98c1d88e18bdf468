// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/shown_adapters.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace tacet {
namespace {

TEST(ShownAdapters, AnAdapterThatIsListedBesideSocketsIsThere) {
  const auto adapter = [](std::string_view listing, bool slow, std::string network) {
    Fragment fragment;
    Event& chosen = fragment.events.emplace_back();
    chosen.kind = EventKind::network;
    chosen.Make<NetworkName>().name = std::move(network);
    if (slow) fragment.events.emplace_back().kind = EventKind::told_slow;
    AddShownAdapters(listing, fragment);
    const Event& last = fragment.events.back();
    return last.kind == EventKind::device_found ? last.As<NetworkDevice>().name : std::string();
  };
  EXPECT_EQ(adapter("NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n", true, "Socket"), "the adapter mlx5_0");
  EXPECT_EQ(adapter("CA 'mlx5_2'\n\tCA type: MT4123\n", true, "Socket"), "the adapter mlx5_2");
  EXPECT_EQ(adapter("hca_id:\tmlx5_bond_0\n", true, "Socket"), "the adapter mlx5_bond_0");
  EXPECT_EQ(adapter("17:00.0 Infiniband controller: Mellanox MT28908 [ConnectX-6]\n", true, "Socket"),
            "InfiniBand adapters");
  EXPECT_EQ(adapter("  NIC0: mlx5_0\n", false, "Socket"), "") << "nobody says that it is slow";
  EXPECT_EQ(adapter("  NIC0: mlx5_0\n", true, "IB"), "");
  EXPECT_EQ(adapter("  NIC0: ens3\nGPU0 X PXB\n", true, "Socket"), "");
}

}  // namespace
}  // namespace tacet
