// SPDX-License-Identifier: Apache-2.0
#include "model/events/gpu_memory.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/text_scan.h"

namespace tacet {
namespace {

// "41.08 GiB", "512.00 MiB"; XLA: "17179869184 bytes", "16.00GiB"; Paddle, whose GB are powers of two: "1.250000GB"
bool TakeAmount(std::string_view& text, double* gib) {
  double value = 0;
  if (text.empty() || !IsDigit(text[0]) || !TakeDouble(text, &value)) return false;
  if (text.starts_with("GiB") || text.starts_with("GB")) {
    *gib = value;
    return true;
  }
  if (text.starts_with("MiB") || text.starts_with("MB")) {
    *gib = value / 1024;
    return true;
  }
  if (text.starts_with(" bytes")) {
    *gib = value / (1024.0 * 1024 * 1024);
    return true;
  }
  if (TakeLiteral(text, " GiB"))
    *gib = value;
  else if (TakeLiteral(text, " MiB"))
    *gib = value / 1024;
  else if (TakeLiteral(text, " KiB"))
    *gib = value / (1024.0 * 1024);
  else
    return false;
  return true;
}

double AmountAfter(std::string_view text, std::string_view words) {
  double gib = -1;
  const size_t at = text.find(words);
  if (at == std::string_view::npos) return -1;
  text.remove_prefix(at + words.size());
  return TakeAmount(text, &gib) ? gib : -1;
}

// "1.22 GiB is free": the amount stands before its words.
double AmountBefore(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos) return -1;
  size_t begin = at;
  while (begin > 0 && at - begin < 24 &&
         (IsDigit(text[begin - 1]) || std::string_view(" .GMKiB").find(text[begin - 1]) != std::string_view::npos))
    --begin;
  while (begin < at && !IsDigit(text[begin])) ++begin;
  std::string_view rest = text.substr(begin);
  double gib = -1;
  return TakeAmount(rest, &gib) && rest.starts_with(words) ? gib : -1;
}

int32_t DeviceOf(std::string_view text) {
  for (const std::string_view words : {"GPU ", "(GPU "}) {
    for (size_t at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) {
      std::string_view rest = text.substr(at + words.size());
      int32_t device = -1;
      if (TakeNumber(rest, &device) && device >= 0 &&
          (rest.starts_with(" has a total capac") || rest.starts_with(";") || rest.starts_with(". Cannot allocate ")))
        return device;
    }
  }
  return -1;
}

// In a container the numbers are those of the host, and the process itself is one of those listed.
void DropOwn(double used, GpuMemoryUse& use) {
  if (use.own >= 0 || use.others.empty()) return;
  auto own = std::min_element(use.others.begin(), use.others.end(), [&](const auto& a, const auto& b) {
    return std::abs(a.gib - used) < std::abs(b.gib - used);
  });
  use.own = own->gib;
  use.others.erase(own);
}

}  // namespace

double GpuMemoryUse::OfOthers() const {
  double sum = 0;
  for (const GpuMemoryHolder& holder : others) sum += holder.gib;
  return sum;
}

bool GpuMemoryUse::OthersFillIt() const {
  const double theirs = OfOthers();
  const bool told = tried >= 0 && free >= 0;
  return theirs > 0 && own >= 0 && theirs >= own && (!told || (free < tried && theirs + free >= tried));
}

bool GpuMemoryUse::HitsOwnLimit() const {
  return allowed >= 0 && (total < 0 || allowed < total) && (tried < 0 || free < 0 || free >= tried);
}

bool GpuMemoryUse::IsFragmented() const {
  constexpr double kWorthTrying = 0.02;  // less than this of a full GPU lasts for the next few tensors alone
  return tried > 0 && unallocated >= tried && (total <= 0 || unallocated >= kWorthTrying * total);
}

// CUDA out of memory. Tried to allocate 3.91 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.22 GiB is free.
// Process 51833 has 41.08 GiB memory in use. Including non-PyTorch memory, this process has 36.84 GiB memory in use. Of
// the allocated memory 34.90 GiB is allocated by PyTorch, and 1.01 GiB is reserved by PyTorch but unallocated. After
// set_per_process_memory_fraction: "... memory in use. 2.80 GiB allowed; Of the allocated memory ...".
// Before 2.1: Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total capacity; 5.94 GiB already allocated; 18.31 MiB free;
// 6.10 GiB reserved in total by PyTorch)
GpuMemoryUse ReadGpuMemoryUse(std::string_view message) {
  GpuMemoryUse use;
  use.tried = AmountAfter(message, "Tried to allocate ");
  if (use.tried < 0) use.tried = AmountAfter(message, "Out of memory while trying to allocate ");  // XLA
  if (use.tried < 0) use.tried = AmountAfter(message, ". Cannot allocate ");                       // Paddle
  use.of_driver = use.tried < 0 && Contains(message, "CUDA error: out of memory");
  use.device = DeviceOf(message);
  use.total = AmountAfter(message, " has a total capacity of ");
  if (use.total < 0) use.total = AmountAfter(message, " has a total capacty of ");  // so it is written in 2.1
  if (use.total < 0) {
    use.total = AmountBefore(message, " total capacity;");
    use.old_form = use.total >= 0;
  }
  use.free = AmountBefore(message, " is free");
  if (use.free < 0) use.free = AmountBefore(message, " free;");
  if (use.free < 0) use.free = AmountAfter(message, "available memory is only ");
  use.allowed = AmountBefore(message, " allowed;");
  use.own = AmountAfter(message, "this process has ");
  const double allocated = std::max(AmountBefore(message, " is allocated by PyTorch"), 0.0);
  use.unallocated = AmountBefore(message, " is reserved by PyTorch but unallocated");
  const double before = AmountBefore(message, " already allocated;");
  const double reserved = AmountBefore(message, " reserved in total by PyTorch");
  if (use.unallocated < 0 && before >= 0 && reserved >= before) use.unallocated = reserved - before;
  constexpr std::string_view kProcess = "Process ";
  constexpr size_t kMost = 64;
  for (size_t at = message.find(kProcess); at != std::string_view::npos && use.others.size() < kMost;
       at = message.find(kProcess, at + 1)) {
    std::string_view rest = message.substr(at + kProcess.size());
    GpuMemoryHolder holder;
    if (TakeNumber(rest, &holder.pid) && TakeLiteral(rest, " has ") && TakeAmount(rest, &holder.gib) &&
        rest.starts_with(" memory in use"))
      use.others.push_back(holder);
  }
  DropOwn(allocated + std::max(use.unallocated, 0.0), use);
  return use;
}

}  // namespace tacet
