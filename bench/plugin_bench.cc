// SPDX-License-Identifier: Apache-2.0
// plugin_bench [--channels N] [--rounds N] [--network] [--endurance EVENTS] PLUGIN...
// What a profiler plugin costs NCCL's threads: nanoseconds a callback, and for all callbacks of one collective. Every
// plugin given is measured in turn, round by round, with the callbacks NCCL would make for the event mask it asks for.
// Medians over the rounds. NCCL Inspector, say, is measured by giving its .so with NCCL_INSPECTOR_ENABLE=1 set.
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/plugin/loaded_plugin.h"

namespace tacet::fake {
namespace {

constexpr int kBatch = 32;  // collectives in flight at once, as a step of training has them

double NowNs() { return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count()); }

// Time this thread really ran: a busy machine does not count. Too dear to read for single calls.
double CpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// A plugin that does nothing, to know what the harness itself takes. It wants handles back for what the measured plugin
// wants.
uint64_t g_wanted = 0;  // event types
int StartNothing(void*, void** handle, void* descr) {
  uint64_t type = 0;
  std::memcpy(&type, descr, sizeof type);
  *handle = (type & g_wanted) != 0 ? descr : nullptr;
  return 0;
}
int StopNothing(void*) { return 0; }
int RecordNothing(void*, int, void*) { return 0; }
struct {
  const char* name = "nothing";
  void* init = nullptr;
  int (*start)(void*, void**, void*) = StartNothing;
  int (*stop)(void*) = StopNothing;
  int (*record)(void*, int, void*) = RecordNothing;
  int (*finalize)(void*) = StopNothing;
} const kNothing;

struct Flight {
  void *group_api = nullptr, *api = nullptr, *launch = nullptr, *group = nullptr, *coll = nullptr;
  std::vector<void*> channels, proxies, steps;
};

// One plugin under test, and the callbacks of a collective one by one. A NULL handle is not used again, as in NCCL.
class Bench {
 public:
  Bench(const std::string& path, int channels, bool network)
      : Bench(LoadedPlugin::Open(path), path.substr(path.rfind('/') + 1), channels, network) {
    if (!plugin_.ok()) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), plugin_.error().c_str());
      std::exit(2);
    }
    plugin_.Init(&context_, &mask_, {0x1234, "bench", network ? 8 : 1, 8, 0});
  }
  // The same callbacks to a plugin that does nothing.
  Bench Empty() const {
    Bench empty(LoadedPlugin::Linked(&kNothing, api()), "nothing", channels_, network_);
    empty.mask_ = mask_;
    empty.wanted_ = 0;
    const Flight& seen = flights_.front();
    if (seen.group_api != nullptr) empty.wanted_ |= kGroupApi;
    if (seen.api != nullptr) empty.wanted_ |= kCollApi;
    if (seen.launch != nullptr) empty.wanted_ |= kKernelLaunch;
    if (seen.group != nullptr) empty.wanted_ |= kGroup;
    if (seen.coll != nullptr) empty.wanted_ |= kColl | kKernelCh | kProxyOp | kProxyStep;
    return empty;
  }
  void Use() const { g_wanted = wanted_; }
  const std::string& name() const { return name_; }
  int mask() const { return mask_; }
  int api() const { return plugin_.api(); }
  uint64_t callbacks() const { return callbacks_; }

  // All of a batch, phase by phase: API calls, launches, then what the proxy sees. `times` gets ns a call by phase.
  void RunBatch(std::map<std::string, std::vector<double>>* times) {
    const int m = mask_;
    const bool api_events = api() >= 5 && m != 0;
    const bool kernel = (m & kKernelCh) != 0 && api() >= 3;
    Phase(times, "GroupApi start", api_events, [&](Flight& f) { StartGroupApi(f); });
    Phase(times, "CollApi start", api_events, [&](Flight& f) { StartCollApi(f); });
    Phase(times, "CollApi stop", api_events, [&](Flight& f) { Stop(f.api); });
    Phase(times, "GroupApi state", api_events, [&](Flight& f) { RecordGroup(f); });
    Phase(times, "KernelLaunch start", api_events && (m & kKernelLaunch) != 0, [&](Flight& f) { StartLaunch(f); });
    Phase(times, "KernelLaunch stop", api_events && (m & kKernelLaunch) != 0, [&](Flight& f) { Stop(f.launch); });
    Phase(times, "Group start", true, [&](Flight& f) { StartGroup(f); });
    Phase(times, "Coll start", true, [&](Flight& f) { StartColl(f); });
    Phase(times, "Coll stop", true, [&](Flight& f) { Stop(f.coll); });
    Phase(times, "Group stop", true, [&](Flight& f) { Stop(f.group); });
    Phase(times, "GroupApi stop", api_events, [&](Flight& f) { Stop(f.group_api); });
    if (network_ && (m & (kProxyOp | kProxyStep)) != 0) RunNetwork(times);
    Phase(times, "KernelCh start", kernel, [&](Flight& f) { StartChannels(f); });
    Phase(times, "KernelCh state", kernel, [&](Flight& f) { RecordChannels(f); });
    Phase(times, "KernelCh stop", kernel, [&](Flight& f) {
      for (void* h : f.channels) Stop(h);
    });
  }

 private:
  Bench(LoadedPlugin plugin, std::string name, int channels, bool network)
      : plugin_(std::move(plugin)), name_(std::move(name)), channels_(channels), network_(network) {
    facts_.count = 1 << 20;
    facts_.channels = static_cast<uint8_t>(channels);
    flights_.resize(kBatch);
    for (Flight& flight : flights_) {
      flight.channels.resize(static_cast<size_t>(channels));
      flight.proxies.resize(static_cast<size_t>(2 * channels));
      flight.steps.resize(static_cast<size_t>(2 * channels));
    }
  }

  template <typename Work>
  void Phase(std::map<std::string, std::vector<double>>* times, const char* name, bool asked, Work work) {
    if (!asked) return;
    const uint64_t before = callbacks_;
    const double begin = times == nullptr ? 0 : NowNs();
    for (Flight& flight : flights_) work(flight);
    if (times == nullptr || callbacks_ == before) return;
    (*times)[name].push_back((NowNs() - begin) / static_cast<double>(callbacks_ - before));
  }

  void Start(EventDescriptor& descr, void** handle) {
    plugin_.Start(context_, handle, descr);
    ++callbacks_;
  }
  void Stop(void* handle) {
    if (handle == nullptr) return;
    plugin_.Stop(handle);
    ++callbacks_;
  }
  void StartGroupApi(Flight& f) {
    EventDescriptor descr(api(), kGroupApi, nullptr, 0);
    Start(descr.GroupApi(false, 1), &f.group_api);
  }
  void StartCollApi(Flight& f) {
    EventDescriptor descr(api(), kCollApi, f.group_api, 0);
    Start(descr.CollApi(facts_), &f.api);
  }
  void RecordGroup(Flight& f) {
    if (f.group_api == nullptr) return;
    plugin_.Record(f.group_api, 23, nullptr);
    plugin_.Record(f.group_api, 24, nullptr);
    callbacks_ += 2;
  }
  void StartLaunch(Flight& f) {
    EventDescriptor descr(api(), kKernelLaunch, f.group_api, 0);
    Start(descr.KernelLaunch(nullptr), &f.launch);
  }
  void StartGroup(Flight& f) {
    EventDescriptor descr(api(), kGroup, nullptr, 0);
    Start(descr, &f.group);
  }
  void StartColl(Flight& f) {
    EventDescriptor descr(api(), kColl, api() >= 5 ? f.api : f.group, 0);
    facts_.seq = ++seq_;
    Start(descr.Coll(facts_, "bench", 0x1234), &f.coll);
  }
  void StartChannels(Flight& f) {
    for (int c = 0; c < channels_; ++c) {
      EventDescriptor descr(api(), kKernelCh, f.coll, 0);
      Start(descr.KernelCh(static_cast<uint8_t>(c), ++gpu_ns_ * 1000), &f.channels[static_cast<size_t>(c)]);
    }
  }
  void RecordChannels(Flight& f) {
    for (void* handle : f.channels) {
      if (handle == nullptr) continue;
      plugin_.RecordChannelStop(handle, (++gpu_ns_ + 100000) * 1000);
      ++callbacks_;
    }
  }

  // Two proxy operations a channel with one step each; a step passes through its three states.
  void RunNetwork(std::map<std::string, std::vector<double>>* times) {
    Phase(times, "ProxyOp start", true, [&](Flight& f) {
      for (size_t i = 0; i < f.proxies.size(); ++i) {
        EventDescriptor descr(api(), kProxyOp, f.coll, 0);
        Start(descr.ProxyOp(pid_, static_cast<uint8_t>(i / 2), i % 2 == 0 ? 1 : 7, 1, 1 << 19, i % 2 == 0),
              &f.proxies[i]);
      }
    });
    Phase(times, "ProxyStep start", true, [&](Flight& f) {
      for (size_t i = 0; i < f.proxies.size(); ++i) {
        EventDescriptor descr(api(), kProxyStep, f.proxies[i], 0);
        Start(descr.ProxyStep(0), &f.steps[i]);
      }
    });
    for (int k = 0; k < 3; ++k)
      Phase(times, "ProxyStep state", true, [&](Flight& f) {
        static constexpr int kSend[] = {8, 20, 9}, kRecv[] = {10, 11, 12};
        for (size_t i = 0; i < f.steps.size(); ++i) {
          if (f.steps[i] == nullptr) continue;
          plugin_.RecordStep(f.steps[i], i % 2 == 0 ? kSend[k] : kRecv[k], 1 << 19);
          ++callbacks_;
        }
      });
    Phase(times, "ProxyStep stop", true, [&](Flight& f) {
      for (void* h : f.steps) Stop(h);
    });
    Phase(times, "ProxyOp stop", true, [&](Flight& f) {
      for (void* h : f.proxies) Stop(h);
    });
  }

  LoadedPlugin plugin_;
  std::string name_;
  void* context_ = nullptr;
  const int pid_ = getpid();
  int mask_ = 0, channels_;
  bool network_;
  CollFacts facts_;
  uint64_t seq_ = 0, gpu_ns_ = 1, callbacks_ = 0, wanted_ = 0;
  std::vector<Flight> flights_;
};

long ResidentKb() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  long pages = 0, resident = 0;
  if (file != nullptr && std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

// A day and more of events: memory must stay what it was.
void RunEndurance(Bench& bench, uint64_t events) {
  for (int i = 0; i < 2000; ++i) bench.RunBatch(nullptr);
  const long before = ResidentKb();
  const uint64_t start = bench.callbacks();
  const double begin = NowNs();
  while (bench.callbacks() - start < events) bench.RunBatch(nullptr);
  const double ns = NowNs() - begin;
  const uint64_t made = bench.callbacks() - start;
  std::printf("%s: %llu callbacks in %.1f s, %.1f ns each; resident %ld KiB before, %ld KiB after\n",
              bench.name().c_str(), static_cast<unsigned long long>(made), ns / 1e9, ns / static_cast<double>(made),
              before, ResidentKb());
}

double MeasureCollective(Bench& bench, double* calls) {
  bench.Use();
  for (int warm = 0; warm < 20; ++warm) bench.RunBatch(nullptr);
  const uint64_t before = bench.callbacks();
  const double begin = CpuNs();
  for (int batch = 0; batch < 50; ++batch) bench.RunBatch(nullptr);
  *calls = static_cast<double>(bench.callbacks() - before) / (50.0 * kBatch);
  return (CpuNs() - begin) / (50.0 * kBatch);
}

struct Measured {
  std::map<std::string, std::vector<double>> phases;
  std::vector<double> whole, empty;
  double calls = 0, empty_calls = 0;
  double Net() const { return Median(whole) - Median(empty); }
};

void Print(const Bench& bench, const Measured& m, const Bench& first, const Measured& other, int channels) {
  std::printf("%s (API v%d, mask 0x%x, %d channels)\n", bench.name().c_str(), bench.api(), bench.mask(), channels);
  std::vector<double> all;
  for (const auto& [name, values] : m.phases) {
    std::printf("  %-20s %7.1f ns\n", name.c_str(), Median(values));
    all.insert(all.end(), values.begin(), values.end());
  }
  std::printf("  a callback           %7.1f ns median over kinds, %.1f ns mean\n", Median(all),
              Median(m.whole) / m.calls);
  std::printf("  a collective         %7.0f ns with %.0f callbacks; %.0f ns of it are the harness\n", Median(m.whole),
              m.calls, Median(m.empty));
  if (&m == &other) return;
  std::printf("  against %s: a collective %.3f, a callback %.3f (both without the harness)\n", first.name().c_str(),
              m.Net() / other.Net(), m.Net() / m.calls / (other.Net() / other.calls));
}

void Compare(std::vector<Bench>& benches, int rounds, int channels) {
  std::vector<Measured> measured(benches.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < benches.size(); ++i) {
      Measured& m = measured[i];
      m.whole.push_back(MeasureCollective(benches[i], &m.calls));
      Bench empty = benches[i].Empty();
      m.empty.push_back(MeasureCollective(empty, &m.empty_calls));
      for (int batch = 0; batch < 20; ++batch) benches[i].RunBatch(&m.phases);
    }
  }
  for (size_t i = 0; i < benches.size(); ++i) Print(benches[i], measured[i], benches[0], measured[0], channels);
}

}  // namespace
}  // namespace tacet::fake

int main(int argc, char** argv) {
  using namespace tacet::fake;
  int channels = 8, rounds = 40;
  bool network = false;
  uint64_t endurance = 0;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--network")
      network = true;
    else if (argument == "--channels" && i + 1 < argc)
      channels = std::atoi(argv[++i]);
    else if (argument == "--rounds" && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else if (argument == "--endurance" && i + 1 < argc)
      endurance = std::strtoull(argv[++i], nullptr, 10);
    else
      paths.push_back(argument);
  }
  if (paths.empty() || channels < 1 || channels > 64) {
    std::fprintf(stderr, "plugin_bench [--channels N] [--rounds N] [--network] [--endurance EVENTS] PLUGIN...\n");
    return 2;
  }
  std::vector<Bench> benches;
  benches.reserve(paths.size());
  for (const std::string& path : paths) benches.emplace_back(path, channels, network);
  if (endurance > 0)
    RunEndurance(benches.front(), endurance);
  else
    Compare(benches, rounds, channels);
  return 0;
}
