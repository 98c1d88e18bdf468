// SPDX-License-Identifier: Apache-2.0
#include "preflight/gpu_exchange.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/text_scan.h"
#include "launch/command_run.h"

namespace tacet {
namespace {

constexpr int64_t kExchangeMs = 25'000;  // loading PyTorch and setting NCCL up takes most of it
constexpr int kMostGpus = 64;

// Arguments: rank, world, local GPU, address, port. Sizes: 1 KiB for latency, 64 MiB for bandwidth.
constexpr char kScript[] = R"(
import datetime, os, sys, time
rank, world, local = (int(word) for word in sys.argv[1:4])
os.environ.update(MASTER_ADDR=sys.argv[4], MASTER_PORT=sys.argv[5])
import torch
import torch.distributed as dist
torch.cuda.set_device(local)
dist.init_process_group("nccl", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=20))
def seconds(numbers, times):
    data = torch.ones(numbers, device="cuda")
    for _ in range(3):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(times):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / times
small, large = seconds(256, 50), seconds(16 << 20, 10)
print("tacet-gpu-exchange", small * 1e6, 2 * (world - 1) / world * (64 << 20) / large, flush=True)
dist.destroy_process_group()
)";

std::string LastLine(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty() && IsSpace(rest.back())) rest.remove_suffix(1);
  return std::string(rest.substr(rest.rfind('\n') == std::string_view::npos ? 0 : rest.rfind('\n') + 1).substr(0, 200));
}

GpuExchange RunNcclTests(int gpus) {
  const CommandOutcome done =
      RunCommand({"all_reduce_perf", "-b", "64M", "-e", "64M", "-g", std::to_string(gpus), "-n", "10", "-w", "3"},
                 {.time_ms = kExchangeMs, .most_bytes = 1 << 20});
  if (!done.ok()) return {"all_reduce_perf " + done.problem};
  GpuExchange exchange;
  exchange.bus_bytes_per_s = ParseAverageBusBandwidth(done.out);
  if (exchange.bus_bytes_per_s <= 0) exchange.error = "all_reduce_perf gave no bandwidth";
  return exchange;
}

}  // namespace

double ParseAverageBusBandwidth(std::string_view output) {
  auto rest = After(output, "Avg bus bandwidth");
  if (!rest) return 0;
  while (!rest->empty() && (IsSpace(rest->front()) || rest->front() == ':')) rest->remove_prefix(1);
  double value = 0;
  return TakeDouble(*rest, &value) ? value * 1e9 : 0;
}

bool ParseExchangeLine(std::string_view output, GpuExchange* exchange) {
  auto rest = After(output, "tacet-gpu-exchange ");
  if (!rest || !TakeDouble(*rest, &exchange->small_us)) return false;
  SkipBlanks(*rest);
  return TakeDouble(*rest, &exchange->bus_bytes_per_s);
}

GpuExchange RunGpuExchange(const GpuExchangePlan& plan) {
  if (plan.gpus < 1 || plan.gpus > kMostGpus || plan.world < 2) return {"there are not two GPUs"};
  const bool one_host = plan.gpus == plan.world;
  if (one_host && !FindProgram("all_reduce_perf").empty()) return RunNcclTests(plan.gpus);
  if (plan.python.empty()) return {"there is neither PyTorch nor all_reduce_perf"};
  std::vector<CommandOutcome> outcomes(static_cast<size_t>(plan.gpus));
  std::vector<std::thread> threads;
  for (int local = 0; local < plan.gpus; ++local)
    threads.emplace_back([&, local] {
      outcomes[static_cast<size_t>(local)] =
          RunCommand({plan.python, "-c", kScript, std::to_string(plan.first_rank + local), std::to_string(plan.world),
                      std::to_string(local), plan.address, std::to_string(plan.port)},
                     {.time_ms = kExchangeMs, .most_bytes = 1 << 20});
    });
  for (std::thread& thread : threads) thread.join();
  GpuExchange exchange;
  for (size_t local = 0; local < outcomes.size(); ++local)
    if (const CommandOutcome& one = outcomes[local]; !one.ok() && exchange.error.empty())
      exchange.error =
          "GPU " + std::to_string(local) + ": " +
          (one.timed_out ? "did not finish within " + std::to_string(kExchangeMs / 1000) + " s" : LastLine(one.error));
  if (exchange.error.empty() && !ParseExchangeLine(outcomes[0].out, &exchange))
    exchange.error = "PyTorch gave no times";
  return exchange;
}

}  // namespace tacet
