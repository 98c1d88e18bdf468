// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_uneven.h"

#include "base/text_scan.h"
#include "evidence/told/told_states.h"

namespace tacet {
namespace {

bool NamesRanks(std::string_view low) {
  return HasAnyWord(low, {"gpu", "gpus", "rank", "ranks", "worker", "workers", "process", "processes", "device",
                          "devices", "card", "cards", "replica", "replicas"});
}

bool NamesSizes(std::string_view low) {
  return HasAnyWord(low, {"size",
                          "sizes",
                          "length",
                          "lengths",
                          "resolution",
                          "resolutions",
                          "shape",
                          "shapes",
                          "number of tokens",
                          "token count",
                          "token counts",
                          "tokens",
                          "number of samples",
                          "samples",
                          "number of images",
                          "images",
                          "frames",
                          "number of frames",
                          "atoms",
                          "number of atoms",
                          "sequences",
                          "batches",
                          "amount of data",
                          "graphs",
                          "points",
                          "crops"});
}

bool DeniesEquality(std::string_view low) {
  return HasAnyWord(low, {"not the same", "not equal", "not get the same", "not have the same", "not receive the same",
                          "not see the same", "not get equal", "not balanced", "never the same"}) ||
         ContainsAny(low, {"n't get the same", "n't have the same", "n't the same", "n't receive the same",
                           "n't see the same", "n't balanced"});
}

bool TellsDifference(std::string_view low) {
  return HasAnyWord(low, {"different", "differ", "differs", "vary", "varies", "varying", "uneven", "unequal",
                          "unbalanced", "imbalanced", "imbalance", "random", "at random"}) &&
         HasAnyWord(low,
                    {"each gpu",         "each rank",         "each worker",    "each process",    "every gpu",
                     "every rank",       "per gpu",           "per rank",       "between gpus",    "between the gpus",
                     "between ranks",    "between the ranks", "across gpus",    "across the gpus", "across ranks",
                     "across the ranks", "across workers",    "across devices", "gpus get",        "gpus receive",
                     "gpus process",     "gpus have",         "ranks get",      "ranks receive",   "ranks process",
                     "ranks have",       "from rank to rank", "from gpu to gpu"});
}

bool TellsTheLargest(std::string_view low) {
  return HasAnyWord(low, {"wait for", "waits for", "waiting for", "wait on", "waits on"}) &&
         HasAnyWord(low, {"largest", "longest", "biggest", "most tokens", "larger", "longer"});
}

}  // namespace

bool StatesUnevenInput(std::string_view sentence) {
  if (!NamesRanks(sentence) || !NamesSizes(sentence)) return false;
  // What a collective carries, and what the model or the memory holds, is another thing.
  if (HasAnyWord(sentence, {"message size", "message sizes", "busbw", "algbw", "allreduce", "all_reduce", "all-reduce",
                            "memory", "world size", "checkpoint", "checkpoints", "shard", "shards", "vocab"}))
    return false;
  if (Contains(sentence, "?") || HasAnyWord(sentence, {"if", "should", "would", "could", "may", "might", "can",
                                                       "whether", "suppose", "no longer", "fixed", "solved"}))
    return false;
  return DeniesEquality(sentence) || TellsDifference(sentence) || TellsTheLargest(sentence);
}

}  // namespace tacet
