// SPDX-License-Identifier: Apache-2.0
// GPUs, adapters, interfaces and what PyTorch says of itself.
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "base/text_scan.h"
#include "launch/command_run.h"
#include "launch/run_folder.h"
#include "preflight/host_facts.h"

namespace tacet {
namespace {

constexpr int64_t kProgramMs = 12'000;  // nvidia-smi on a host with a sick GPU, PyTorch from a network file system

std::string LineOf(const std::string& path) {
  const std::string text = ReadSmallFile(path, 4096);
  std::string_view rest = text;
  return std::string(Trim(TakeUntil(rest, '\n')));
}

// "8 x NVIDIA H100 80GB HBM3" of the lines' first column; several kinds are joined by commas.
std::string CountKinds(const std::vector<std::string>& kinds) {
  std::map<std::string, int> counts;
  for (const std::string& kind : kinds) ++counts[kind];
  std::string words;
  for (const auto& [kind, count] : counts) words += (words.empty() ? "" : ", ") + std::to_string(count) + " x " + kind;
  return words;
}

// NVIDIA H100 80GB HBM3, 550.54.15, Enabled, Disabled, 0x0000000000000000
void AddGpus(HostFacts& facts) {
  const std::string loaded = LineOf("/proc/driver/nvidia/version");
  if (FindProgram("nvidia-smi").empty()) {
    if (!loaded.empty()) facts.values["driver"] = loaded;
    return;
  }
  const CommandOutcome asked = RunCommand(
      {"nvidia-smi", "--query-gpu=name,driver_version,ecc.mode.current,mig.mode.current,clocks_throttle_reasons.active",
       "--format=csv,noheader"},
      {.time_ms = kProgramMs, .most_bytes = 1 << 20});
  if (!asked.ok()) {
    facts.values["gpu_problem"] = "nvidia-smi " + asked.problem;
    return;
  }
  std::vector<std::string> names, modes;
  for (std::string_view rest = asked.out; !rest.empty();) {
    std::string_view line = TakeUntil(rest, '\n');
    if (!rest.empty()) rest.remove_prefix(1);
    std::vector<std::string> columns;
    while (!line.empty()) {
      columns.emplace_back(Trim(TakeUntil(line, ',')));
      if (!line.empty()) line.remove_prefix(1);
    }
    if (columns.size() < 2) continue;
    names.push_back(columns[0]);
    facts.values["driver"] = columns[1];
    if (columns.size() >= 4) modes.push_back("ECC " + columns[2] + ", MIG " + columns[3]);
    uint64_t reasons = 0;
    // Hardware slowdown, its thermal kind, the software's thermal kind, the power brake.
    constexpr uint64_t kBad = 0x8 | 0x40 | 0x20 | 0x80;
    std::string_view text;
    if (columns.size() >= 5) text = columns[4];
    if (TakeHex(text, &reasons) && (reasons & kBad) != 0)
      facts.values["gpu_throttled"] = "GPU " + std::to_string(names.size() - 1);
  }
  facts.values["gpus"] = CountKinds(names);
  facts.values["gpu_count"] = std::to_string(names.size());
  facts.values["gpu_modes"] = CountKinds(modes);
}

// /sys/class/infiniband/mlx5_0/ports/1/{state,rate,link_layer}: "4: ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand"
void AddAdapters(HostFacts& facts) {
  std::error_code error;
  std::vector<std::string> ports, firmware;
  std::string down;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", error)) {
    firmware.push_back(LineOf(device.path().string() + "/fw_ver"));
    std::error_code inner;
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", inner)) {
      const std::string folder = port.path().string(), state = LineOf(folder + "/state");
      const std::string name = device.path().filename().string() + ":" + port.path().filename().string();
      if (!Contains(state, "ACTIVE")) down += (down.empty() ? "" : ", ") + name + " (" + state + ")";
      ports.push_back(LineOf(folder + "/link_layer") + " " + LineOf(folder + "/rate"));
    }
  }
  facts.values["rdma_ports"] = CountKinds(ports);
  facts.values["rdma_down"] = down;
  facts.values["rdma_firmware"] = CountKinds(firmware);
}

// What the job itself will load; a host without PyTorch simply has no such line.
void AddPython(const std::string& python, HostFacts& facts) {
  if (python.empty()) facts.values[kPythonSkipped] = "1";
  if (python.empty() || (python.find('/') == std::string::npos && FindProgram(python).empty())) return;
  static constexpr char kAsk[] =
      "import torch\nprint('torch', torch.__version__)\nprint('cuda', torch.version.cuda or 'none')\n"
      "try:\n  print('nccl', '.'.join(str(n) for n in torch.cuda.nccl.version()))\nexcept Exception:\n  pass\n";
  const CommandOutcome asked = RunCommand({python, "-c", kAsk}, {.time_ms = kProgramMs, .most_bytes = 1 << 16});
  for (std::string_view rest = asked.out; !rest.empty();) {
    std::string_view line = TakeUntil(rest, '\n');
    if (!rest.empty()) rest.remove_prefix(1);
    const std::string key(TakeWord(line));
    if (key == "torch" || key == "cuda" || key == "nccl") facts.values[key] = Trim(line);
  }
}

// libnccl.so.2.27.3 behind the name that the loader knows.
void AddLibrary(HostFacts& facts) {
  if (facts.values.contains("nccl")) return;
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib",
                             "/usr/local/nccl/lib"}) {
    std::error_code error;
    const auto real = std::filesystem::canonical(std::string(folder) + "/libnccl.so.2", error);
    if (error) continue;
    const std::string name = real.filename().string();
    if (const auto version = After(name, "libnccl.so.")) facts.values["nccl"] = *version;
    return;
  }
}

// From the kernel itself: /sys may belong to another network namespace.
void AskKernel(int fd, NetInterface& interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.name.c_str(), IFNAMSIZ - 1);
  if (::ioctl(fd, SIOCGIFMTU, &request) == 0) interface.mtu = request.ifr_mtu;
  ethtool_cmd link{};
  link.cmd = ETHTOOL_GSET;
  request.ifr_data = reinterpret_cast<char*>(&link);
  if (::ioctl(fd, SIOCETHTOOL, &request) != 0) return;
  const uint32_t speed = ethtool_cmd_speed(&link);
  if (speed != 0 && speed < 10'000'000) interface.speed_mbps = speed;
}

}  // namespace

void AddDeviceFacts(const FactsOptions& options, HostFacts& facts) {
  HostFacts of_python;
  std::thread python([&] { AddPython(options.python, of_python); });
  AddGpus(facts);
  AddAdapters(facts);
  python.join();
  facts.values.merge(of_python.values);
  AddLibrary(facts);
  facts.values["nccl_tests"] = FindProgram("all_reduce_perf");
}

std::vector<NetInterface> ReadInterfaces() {
  std::map<std::string, NetInterface> by_name;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    NetInterface& interface = by_name[one->ifa_name];
    interface.name = one->ifa_name;
    interface.up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0;
    const int family = one->ifa_addr != nullptr ? one->ifa_addr->sa_family : AF_UNSPEC;
    if (family != AF_INET && family != AF_INET6) continue;
    char address[256] = "";
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(one->ifa_addr, size, address, sizeof address, nullptr, 0, NI_NUMERICHOST) == 0)
      interface.addresses.emplace_back(address);
  }
  ::freeifaddrs(list);
  std::vector<NetInterface> interfaces;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (auto& [name, interface] : by_name) {
    if (fd >= 0) AskKernel(fd, interface);
    interfaces.push_back(std::move(interface));
  }
  if (fd >= 0) ::close(fd);
  return interfaces;
}

}  // namespace tacet
