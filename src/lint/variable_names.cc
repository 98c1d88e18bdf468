// SPDX-License-Identifier: Apache-2.0
// Which product a name belongs to, and which name was meant.
#include <algorithm>
#include <array>
#include <vector>

#include "base/text_scan.h"
#include "lint/variable_table.h"

namespace tacet {
namespace {

// NCCL's prefix on variables that others read: plugins, images, build scripts.
constexpr std::string_view kForeignPrefixes[] = {
    "NCCL_PROFILE", "NCCL_TESTS_",   "NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_",
    "NCCL_TUNER_",  "NCCL_SHIMNET_", "NCCL_UCX_",     "NCCL_SHARP_",
    "NCCL_OFI_",    "NCCL_GIB_",     "NCCL_PLUGIN_",  "NCCL_TELEMETRY_",
    "NCCL_COMMA_",  "NCCL_INCLUDE",  "NCCL_LIB",      "NCCL_ROOT",
    "NCCL_VERSION", "NCCL_INSTALL",  "NCCL_BUILD",    "NCCL_PACKAGE",
    "NCCL_SRC",     "NCCL_SOURCE",   "NCCL_GIT",      "NCCL_USE_CMAKE",
    "NCCL_EXTRA",   "NCCL_IMAGE",    "NCCL_TEST_",    "NCCL_XPU",
    "NCCL_TCPX"};
constexpr std::string_view kForeignNames[] = {"NCCL_HOME", "NCCL_DIR",   "NCCL_PATH", "NCCL_PREFIX", "NCCL_URL",
                                              "NCCL_TEST", "NCCL_TESTS", "NCCL_ARGS", "NCCL_OPTS",   "NCCL_ENV"};

constexpr std::pair<std::string_view, std::string_view> kProducts[] = {{"TORCH_", "PyTorch"},
                                                                       {"NCCL_", "NCCL"},
                                                                       {"UCX_", "UCX"},
                                                                       {"FI_", "libfabric"},
                                                                       {"OFI_NCCL_", "aws-ofi-nccl"},
                                                                       {"GLOO_", "gloo"},
                                                                       {"TP_SOCKET_", "TensorPipe"},
                                                                       {"OMP_", "OpenMP"}};

// Letters to insert, delete, replace or swap; stops counting above `most`.
size_t EditDistance(std::string_view a, std::string_view b, size_t most) {
  if (a.size() > b.size() + most || b.size() > a.size() + most) return most + 1;
  std::vector<size_t> two(b.size() + 1), one(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) one[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    size_t least = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({one[j] + 1, now[j - 1] + 1, one[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], two[j - 2] + 1);
      least = std::min(least, now[j]);
    }
    if (least > most) return most + 1;
    two.swap(one);
    one.swap(now);
  }
  return one[b.size()];
}

// NCCL_DISABLE_P2P has the words of NCCL_P2P_DISABLE, and so has NCCL_P2PDISABLE.
std::string SortedWords(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    if (const std::string_view word = TakeUntil(name, '_'); !word.empty()) words.push_back(word);
    if (!name.empty()) name.remove_prefix(1);
  }
  std::sort(words.begin(), words.end());
  std::string joined;
  for (const std::string_view word : words) joined += word;
  return joined;
}

}  // namespace

std::string_view ProductOf(std::string_view name) {
  for (const auto& [prefix, product] : kProducts)
    if (name.starts_with(prefix) && !(prefix == "TORCH_" && !FindKnownVariable(name) && !IsListClosed(name)))
      return product;
  return FindKnownVariable(name) ? "CUDA" : "";
}

bool IsListClosed(std::string_view name) {
  if (name.starts_with("TORCH_NCCL_") || name.starts_with("TORCH_FR_") || name.starts_with("TORCH_DISTRIBUTED_"))
    return true;
  if (!name.starts_with("NCCL_") || name.size() == 5) return false;
  if (std::find(std::begin(kForeignNames), std::end(kForeignNames), name) != std::end(kForeignNames)) return false;
  return std::none_of(std::begin(kForeignPrefixes), std::end(kForeignPrefixes),
                      [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string_view NearestVariable(std::string_view name) {
  constexpr size_t kLongest = 80;  // no known name is longer than 60
  if (name.size() > kLongest) return "";
  // One wrong letter in ten is a slip; more makes another word.
  size_t best = std::min<size_t>(3, std::max<size_t>(1, name.size() / 8)) + 1;
  std::string_view nearest;
  const std::string words = SortedWords(name), torch_words = SortedWords("TORCH_" + std::string(name));
  for (const Variable& variable : AllVariables()) {
    if (ProductOf(variable.name) == "CUDA") continue;
    const std::string known = SortedWords(variable.name);
    if (known == words || known == torch_words) return variable.name;
    if (const size_t distance = EditDistance(name, variable.name, best - 1); distance < best) {
      best = distance;
      nearest = variable.name;
    }
  }
  return nearest;
}

}  // namespace tacet
