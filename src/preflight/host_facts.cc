// SPDX-License-Identifier: Apache-2.0
#include "preflight/host_facts.h"

#include <netdb.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text_scan.h"
#include "launch/collect/secret_words.h"
#include "launch/run_folder.h"
#include "launch/run_settings.h"

extern "C" char** environ;

namespace tacet {
namespace {

std::string FirstLine(const std::string& path) {
  const std::string text = ReadSmallFile(path, 4096);
  std::string_view rest = text;
  return std::string(Trim(TakeUntil(rest, '\n')));
}

std::string LimitWords(int resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return "";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

// "model name : AMD EPYC ...", once.
std::string CpuModel() {
  const std::string text = ReadSmallFile("/proc/cpuinfo", 8192);
  auto rest = After(text, "model name");
  if (!rest) return "";
  std::string_view line = TakeUntil(*rest, '\n');
  return std::string(Trim(line.substr(std::min(line.size(), line.find(':') + 1))));
}

void AddSharedMemory(const std::string& path, HostFacts& facts) {
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) != 0) return;
  facts.values["shm_total"] = std::to_string(uint64_t{space.f_blocks} * space.f_frsize);
  facts.values["shm_free"] = std::to_string(uint64_t{space.f_bavail} * space.f_frsize);
}

void AddCpu(HostFacts& facts) {
  facts.values["cpu"] = CpuModel();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) facts.values["cores"] = std::to_string(CPU_COUNT(&cores));
  const std::string quota = FirstLine("/sys/fs/cgroup/cpu.max");
  if (!quota.empty() && !quota.starts_with("max")) facts.values["cpu_quota"] = quota;
  const std::string memory = ReadSmallFile("/proc/meminfo", 4096);
  if (const auto kb = IntAfter(memory, "MemTotal:       ")) facts.values["memory_kb"] = std::to_string(*kb);
}

// What the host's own name leads to: gloo and many launchers go by it.
void AddName(HostFacts& facts) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(facts.values["host"].c_str(), nullptr, &hints, &found) != 0) {
    facts.values["own_name"] = "does not resolve";
    return;
  }
  char address[256] = "";
  ::getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, nullptr, 0, NI_NUMERICHOST);
  facts.values["own_name"] = address;
  ::freeaddrinfo(found);
}

}  // namespace

std::string HostFacts::Value(const std::string& key) const {
  const auto found = values.find(key);
  return found != values.end() ? found->second : "";
}

int64_t HostFacts::Number(const std::string& key, int64_t otherwise) const {
  const std::string text = Value(key);
  std::string_view rest = text;
  int64_t value = 0;
  return TakeNumber(rest, &value) ? value : otherwise;
}

const NetInterface* HostFacts::InterfaceOf(std::string_view address) const {
  for (const NetInterface& one : interfaces)
    if (std::find(one.addresses.begin(), one.addresses.end(), address) != one.addresses.end()) return &one;
  return nullptr;
}

HostFacts CollectHostFacts(const FactsOptions& options) {
  HostFacts facts;
  facts.values["tacet"] = options.version;
  facts.values["host"] = HostName();
  facts.values["boot_id"] = FirstLine("/proc/sys/kernel/random/boot_id");
  utsname system{};
  if (::uname(&system) == 0) facts.values["kernel"] = system.release;
  facts.values["memlock"] = LimitWords(RLIMIT_MEMLOCK);
  facts.values["open_files"] = LimitWords(RLIMIT_NOFILE);
  facts.values["stack"] = LimitWords(RLIMIT_STACK);
  facts.values["port_range"] = FirstLine("/proc/sys/net/ipv4/ip_local_port_range");
  std::replace(facts.values["port_range"].begin(), facts.values["port_range"].end(), '\t', ' ');
  AddSharedMemory(options.shm, facts);
  AddCpu(facts);
  AddName(facts);
  facts.interfaces = ReadInterfaces();
  AddDeviceFacts(options, facts);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (IsRelevantVariable(name) && !name.starts_with("SLURM") && !name.starts_with("OMPI") && !name.starts_with("PMI"))
      facts.variables.emplace_back(name, HideSecret(name, text.substr(equals + 1)));
  }
  std::erase_if(facts.values, [](const auto& pair) { return pair.second.empty(); });
  return facts;
}

void WriteFacts(JsonWriter& json, const HostFacts& facts) {
  json.BeginObject().Key("values").BeginObject();
  for (const auto& [key, value] : facts.values) json.Key(key).String(value);
  json.EndObject().Key("interfaces").BeginArray();
  for (const NetInterface& one : facts.interfaces) {
    json.BeginObject().Key("name").String(one.name).Key("mtu").Int(one.mtu).Key("speed_mbps").Int(one.speed_mbps);
    json.Key("up").Bool(one.up).Key("addresses").BeginArray();
    for (const std::string& address : one.addresses) json.String(address);
    json.EndArray().EndObject();
  }
  json.EndArray().Key("variables").BeginObject();
  for (const auto& [name, value] : facts.variables) json.Key(name).String(value);
  json.EndObject().EndObject();
}

HostFacts ReadFacts(const JsonValue& value) {
  HostFacts facts;
  if (const JsonValue* values = value.Find("values"))
    for (const JsonMember& member : values->members) facts.values[member.name] = member.value.text;
  if (const JsonValue* interfaces = value.Find("interfaces"))
    for (const JsonValue& item : interfaces->items) {
      NetInterface& one = facts.interfaces.emplace_back();
      if (const JsonValue* name = item.Find("name")) one.name = name->text;
      if (const JsonValue* mtu = item.Find("mtu")) one.mtu = mtu->Int(-1);
      if (const JsonValue* speed = item.Find("speed_mbps")) one.speed_mbps = speed->Int(-1);
      if (const JsonValue* up = item.Find("up")) one.up = up->boolean;
      if (const JsonValue* addresses = item.Find("addresses"))
        for (const JsonValue& address : addresses->items) one.addresses.push_back(address.text);
    }
  if (const JsonValue* variables = value.Find("variables"))
    for (const JsonMember& member : variables->members) facts.variables.emplace_back(member.name, member.value.text);
  return facts;
}

}  // namespace tacet
