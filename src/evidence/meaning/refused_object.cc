// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/refused_object.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostOfAName = 200;

// "torch.Size([128256, 4096])" and "((128512, 4096))" are both "[128256, 4096]".
std::string ShapeIn(std::string_view text) {
  const size_t begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos || begin > 20) return "";
  const size_t end = std::min(text.find_first_not_of("0123456789, ", begin), text.size());
  std::string_view numbers = Trim(text.substr(begin, std::min<size_t>(end - begin, 80)));
  while (numbers.ends_with(',')) numbers.remove_suffix(1);  // Python writes (8,) for one dimension
  return "[" + std::string(numbers) + "]";
}

std::string NameAt(std::string_view text) {
  text = text.substr(0, std::min(text.find_first_of(" :\n,"), kMostOfAName));
  while (text.ends_with('.')) text.remove_suffix(1);
  return std::string(text);
}

std::string BothShapes(const std::string& key, const std::string& saved, const std::string& model) {
  if (key.empty() || saved.empty() || model.empty()) return "";
  return key + " is " + saved + " in the checkpoint and " + model + " in the model";
}

// Megatron: Global shape mismatch for loaded (torch.Size([128256, 4096])) and expected ((128512, 4096)) tensor for key
// embedding.word_embeddings.weight
std::string ShapesOfMegatron(std::string_view message) {
  const auto loaded = After(message, "mismatch for loaded "), expected = After(message, " and expected "),
             key = After(message, "tensor for key ");
  return loaded && expected && key ? BothShapes(NameAt(*key), ShapeIn(*loaded), ShapeIn(*expected)) : "";
}

// load_state_dict: size mismatch for lm_head.weight: copying a param with shape torch.Size([32000, 4096]) from
// checkpoint, the shape in current model is torch.Size([32064, 4096]).
std::string ShapesOfStateDict(std::string_view message) {
  const auto key = After(message, "size mismatch for ");
  if (!key) return "";
  const auto saved = After(*key, "param with shape "), model = After(*key, "in current model is ");
  return saved && model ? BothShapes(NameAt(*key), ShapeIn(*saved), ShapeIn(*model)) : "";
}

// torch.distributed.checkpoint: Size mismatch between saved torch.Size([8, 4]) and current: torch.Size([16, 4]) for
// model.embed.weight
std::string ShapesOfDistributed(std::string_view message) {
  const auto saved = After(message, "Size mismatch between saved ");
  const auto model = saved ? After(*saved, " and current: ") : saved;
  const auto key = model ? After(*model, " for ") : model;
  return key ? BothShapes(NameAt(*key), ShapeIn(*saved), ShapeIn(*model)) : "";
}

// Megatron: hidden_size value from checkpoint (4096) is not equal to the input argument value (5120).
std::string ArgumentOfMegatron(std::string_view message) {
  const auto saved = After(message, " value from checkpoint (");
  const auto given = saved ? After(*saved, "the input argument value (") : saved;
  if (!given) return "";
  std::string_view name = message.substr(0, static_cast<size_t>(saved->data() - message.data()));
  name = name.substr(0, name.find(" value from checkpoint ("));
  name = name.substr(name.find_last_of(" \n:") + 1);
  return std::string(name.substr(0, kMostOfAName)) + " is " + std::string(saved->substr(0, saved->find(')'))) +
         " in the checkpoint and " + std::string(given->substr(0, given->find(')'))) + " in the arguments";
}

// DDP: Parameter at index 447 with name layers.27.down_proj.weight has been marked as ready twice.
std::string ParameterOfDdp(std::string_view message) {
  auto place = After(message, "Parameter at index ");
  if (!place || !Contains(*place, " has been marked as ready twice")) return "";
  const auto name = After(place->substr(0, place->find(" has been marked")), "with name ");
  return name ? NameAt(*name) : "index " + NameAt(*place);
}

// fairseq: "grad_norm across the workers:", then "rank   2 = 4.90220165" for each rank. Who alone differs is named.
std::string NormOfOneRank(std::string_view message) {
  auto rest = After(message, "grad_norm across the workers:");
  std::map<std::string, std::vector<int32_t>> by_norm;
  while (rest) {
    rest = After(*rest, "rank ");
    if (!rest) break;
    std::string_view line = Trim(rest->substr(0, rest->find('\n')));
    int32_t rank = -1;
    if (!TakeNumber(line, &rank)) continue;
    line = Trim(line);
    if (!TakeLiteral(line, "=")) continue;
    std::string_view value = Trim(line);
    value = value.substr(0, value.find_first_of(" ;"));
    if (!value.empty()) by_norm[std::string(value.substr(0, kMostOfAName))].push_back(rank);
  }
  if (by_norm.size() != 2) return "";
  const auto &first = *by_norm.begin(), &second = *by_norm.rbegin();
  if ((first.second.size() == 1) == (second.second.size() == 1)) return "";  // of two ranks neither is the odd one
  const auto& [odd, ranks] = first.second.size() == 1 ? first : second;
  return "the gradient norm is " + odd + " on rank " + std::to_string(ranks.front()) + " and " +
         (first.second.size() == 1 ? second.first : first.first) + " on the others";
}

}  // namespace

std::string RefusedObject(std::string_view message) {
  for (const auto read :
       {ShapesOfMegatron, ShapesOfStateDict, ShapesOfDistributed, ArgumentOfMegatron, ParameterOfDdp, NormOfOneRank})
    if (std::string object = read(message); !object.empty()) return object;
  return "";
}

}  // namespace tacet
