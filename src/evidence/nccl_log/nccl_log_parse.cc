// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_parse.h"

#include "base/text_scan.h"
#include "evidence/nccl_log/nccl_log_fields.h"

namespace tacet {
namespace {

struct FunctionWord {
  std::string_view word;
  NcclFunction function;
};
constexpr FunctionWord kFunctionWords[] = {
    {"AllReduce", NcclFunction::all_reduce},
    {"AllGather", NcclFunction::all_gather},
    {"ReduceScatter", NcclFunction::reduce_scatter},
    {"Recv", NcclFunction::recv},
    {"Send", NcclFunction::send},
    {"Broadcast", NcclFunction::broadcast},
    {"Reduce", NcclFunction::reduce},
    {"AlltoAll", NcclFunction::all_to_all},
    {"Gather", NcclFunction::gather},
    {"Scatter", NcclFunction::scatter},
    {"AllGatherV", NcclFunction::all_gather},
    {"PutSignal", NcclFunction::one_sided},
    {"Signal", NcclFunction::one_sided},
    {"WaitSignal", NcclFunction::one_sided},
};

// Takes "AllReduce" and the `stop` behind it off the front.
NcclFunction TakeFunction(std::string_view& text, char stop) {
  if (text.empty()) return NcclFunction::unknown;
  for (const FunctionWord& entry : kFunctionWords) {
    const size_t length = entry.word.size();
    if (text[0] != entry.word[0] || text.size() <= length || text[length] != stop || !text.starts_with(entry.word))
      continue;
    text.remove_prefix(length + 1);
    return entry.function;
  }
  return NcclFunction::unknown;
}

bool TakeCount(std::string_view& text, int64_t* count) {
  FieldCursor cursor(text);
  if (!cursor.Count(count)) return false;
  text = cursor.rest();
  return true;
}

// What follows the count, in the order in which NCCL has printed it since 2.4.
bool ParseEnding(FieldCursor& cursor, NcclCall* call) {
  return cursor.Literal(" datatype ") && cursor.Small(&call->data_type) && cursor.Literal(" op ") &&
         cursor.Small(&call->reduction) && cursor.Literal(" root ") && cursor.Small(&call->root) &&
         cursor.Literal(" comm ") && cursor.Address(&call->comm) && cursor.Literal(" [nranks=") &&
         cursor.Small(&call->nranks) && cursor.Literal("]");
}

// Any other choice of fields, as documents show them: pairs of a key and a value.
bool ParseLooseCall(std::string_view text, NcclCall* call) {
  bool has_size = false;
  for (std::string_view key = TakeWord(text); !key.empty(); key = TakeWord(text)) {
    bool ok = true;
    if (key.starts_with("[nranks=")) {
      key.remove_prefix(8);
      ok = TakeNumber(key, &call->nranks);
    } else if (SkipBlanks(text); key == "count") {
      ok = has_size = TakeCount(text, &call->count);
    } else if (key == "bytes" || key == "size") {
      ok = has_size = TakeCount(text, &call->bytes);
    } else if (key == "datatype") {
      ok = TakeNumber(text, &call->data_type);
    } else if (key == "op") {
      ok = TakeNumber(text, &call->reduction);
    } else if (key == "root" || key == "peer") {
      ok = TakeNumber(text, &call->root);
    } else if (key == "comm") {
      ok = TakeAddress(text, &call->comm);
    } else if (key != "DONE") {
      TakeWord(text);
    }
    if (!ok) return false;
  }
  return has_size;
}

}  // namespace

std::string_view Name(NcclFunction function) {
  static constexpr std::string_view kNames[kNcclFunctions] = {"",          "AllReduce", "AllGather", "ReduceScatter",
                                                              "Broadcast", "Reduce",    "AlltoAll",  "Gather",
                                                              "Scatter",   "Send",      "Recv",      "PutSignal"};
  return kNames[static_cast<size_t>(function)];
}

// AllReduce: opCount 1f sendbuff 0x7f7e1d800000 recvbuff 0x7f7e1d800000 count 262144 datatype 7 op 0 root 0 comm ...
// Recv: opCount 2 sendbuff (nil) recvbuff 0x7f4d2e00 count 262144 datatype 9 op 0 root 1 comm 0x1c73b720 [nranks=4] ...
// AllReduce: opCount 1e size 4194304 datatype 7 op 0 root 0 comm 0x7f8a4c000b80 [nranks=8] stream 0x7f8a4c001000
// AllReduce: opCount 42 bytes 104857600 datatype 7 op 0
// AllReduce: opCount 1e DONE
bool NcclCallReader::Parse(std::string_view message, uint32_t writer, NcclCall* call) {
  *call = {};
  call->function = TakeFunction(message, ':');
  FieldCursor cursor(message);
  if (call->function == NcclFunction::unknown || !cursor.Literal(" opCount ") || !cursor.Hex(&call->op_count))
    return false;
  FieldCursor full = cursor;
  if (!full.Literal(" sendbuff ")) return ParseLooseCall(cursor.rest(), call) || Trim(cursor.rest()) == "DONE";
  if (!full.AfterAddress(" recvbuff ") || !full.AfterAddress(" count ") || !full.Count(&call->count)) return false;
  const std::string_view rest = full.rest();
  Ending& known = endings_[writer % kWriters][static_cast<size_t>(call->function)];
  if (!known.text.empty() && rest.starts_with(known.text)) {
    call->data_type = known.call.data_type;
    call->reduction = known.call.reduction;
    call->root = known.call.root;
    call->comm = known.call.comm;
    call->nranks = known.call.nranks;
    return true;
  }
  if (!ParseEnding(full, call)) return false;
  known = {rest.substr(0, rest.size() - full.rest().size()), *call};
  return true;
}

bool ParseCall(std::string_view message, NcclCall* call) { return NcclCallReader().Parse(message, 0, call); }

// ncclAllReduce(7f2a00000000,7f2a00000000,1024,7,0,0,0x55d0c0a0,0x7f10aa00)
// ncclSend(0,7f2a00000000,4096,9,0,1,0x55d0c0a0,0x7f10aa00)
bool ParseApiCall(std::string_view message, NcclCall* call) {
  *call = {};
  if (!TakeLiteral(message, "nccl") || !message.ends_with(")")) return false;  // a cut line has a cut address
  call->function = TakeFunction(message, '(');
  if (call->function == NcclFunction::unknown) return false;
  TakeArgument(message);
  TakeArgument(message);
  std::string_view count = TakeArgument(message);
  return TakeCount(count, &call->count) && TakeNumberArgument(message, &call->data_type) &&
         TakeNumberArgument(message, &call->reduction) && TakeNumberArgument(message, &call->root) &&
         TakeAddressArgument(message, &call->comm);
}

}  // namespace tacet
