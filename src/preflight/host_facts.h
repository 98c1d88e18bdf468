// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "base/json_writer.h"

namespace tacet {

struct NetInterface {
  std::string name;
  std::vector<std::string> addresses;  // without the prefix length
  int64_t mtu = -1;
  int64_t speed_mbps = -1;  // -1: the driver does not tell
  bool up = false;
};

// The key that says that nobody looked for PyTorch.
inline constexpr const char* kPythonSkipped = "python_skipped";

// What a host says of itself. Plain pairs, so that hosts can be compared key by key; what cannot be had is not there.
struct HostFacts {
  std::map<std::string, std::string> values;
  std::vector<NetInterface> interfaces;
  std::vector<std::pair<std::string, std::string>> variables;  // of NCCL, PyTorch and the libraries below them

  std::string Value(const std::string& key) const;
  int64_t Number(const std::string& key, int64_t otherwise) const;
  const NetInterface* InterfaceOf(std::string_view address) const;
};

struct FactsOptions {
  std::string python = "python3";  // asked for its PyTorch; empty: not asked
  std::string version;             // of tacet
  std::string shm = "/dev/shm";
};

// Without root, in a few seconds: every program that is asked has its own time limit.
HostFacts CollectHostFacts(const FactsOptions& options);
void AddDeviceFacts(const FactsOptions& options, HostFacts& facts);  // GPUs, RDMA, PyTorch
std::vector<NetInterface> ReadInterfaces();

void WriteFacts(JsonWriter& json, const HostFacts& facts);
// Takes what is there; a stranger's message costs no more than its length.
HostFacts ReadFacts(const JsonValue& value);

}  // namespace tacet
