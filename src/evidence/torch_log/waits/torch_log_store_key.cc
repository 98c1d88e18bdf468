// SPDX-License-Identifier: Apache-2.0
// Keys of the store that one rank writes and the others wait for:
//   /default_pg/0//cpu//0/2        gloo's address of rank 2, as all members of the job's first group need it
//   /worker/3/ready, init/rank_3   a program's own
#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"

namespace tacet {
namespace {

constexpr int32_t kMostRankInKey = 100'000;

// The number that the text begins with, where nothing but the end of a part of the key follows.
int32_t NumberOfPart(std::string_view text) {
  int32_t number = -1;
  if (!TakeNumber(text, &number) || number < 0 || number > kMostRankInKey) return -1;
  return text.empty() || text[0] == '/' || text[0] == '_' || text[0] == ':' || text[0] == '-' ? number : -1;
}

// "rank_3", "rank3", "worker/3"
int32_t RankWordInKey(std::string_view key) {
  for (const std::string_view word : {"rank", "worker"}) {
    const size_t at = key.find(word);
    if (at == std::string_view::npos || (at > 0 && key[at - 1] != '/' && key[at - 1] != '_' && key[at - 1] != ':'))
      continue;
    std::string_view rest = key.substr(at + word.size());
    if (!rest.empty() && std::string_view("_/:-").find(rest[0]) != std::string_view::npos) rest.remove_prefix(1);
    if (const int32_t rank = NumberOfPart(rest); rank >= 0) return rank;
  }
  return -1;
}

constexpr std::string_view kFirstGroup = "default_pg/0//";

}  // namespace

bool IsKeyOfGroup(std::string_view key) {
  auto rest = After(key, kFirstGroup);
  int64_t group = 0;
  return rest && TakeNumber(*rest, &group) && group > 0 && TakeLiteral(*rest, "//") &&
         (rest->starts_with("cpu//") || rest->starts_with("cuda//") || rest->starts_with("xpu//"));
}

std::string_view OwnKeyIn(std::string_view key) {
  const auto rest = After(key, kFirstGroup);
  if (!rest || rest->empty() || rest->size() > 80 || IsDigit(rest->front()) ||
      ContainsAny(*rest, {"//", ", ", "barrier", "cuda", "worker_count", "torchelastic"}))
    return {};
  return *rest;
}

int32_t RankInStoreKey(std::string_view key) {
  if (key.empty() || key.find(", ") != std::string_view::npos) return -1;  // several: those that are there stand too
  if (const auto mesh = After(key, "default_pg/0//cpu//")) {
    const size_t slash = mesh->find('/');
    if (slash == std::string_view::npos) return -1;
    std::string_view last = mesh->substr(slash + 1);
    TakeLiteral(last, "rank_");
    const int32_t rank = NumberOfPart(last);
    return rank >= 0 && last.find('/') == std::string_view::npos ? rank : -1;
  }
  return RankWordInKey(key);
}

}  // namespace tacet
