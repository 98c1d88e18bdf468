// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_jax.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

// XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.
// Execution of replica 0 failed: Resource exhausted: Out of memory while trying to allocate 8589934592 bytes.
// Failed to allocate request for 7.45GiB (8000000000B) on device ordinal 0
// RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm.
// tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,4096]
// A message that is larger than gRPC allows is a resource that is exhausted, too.
bool TellsNoMemory(std::string_view text) {
  if (ContainsAny(text, {"OOM when allocating tensor", "Resource exhausted: Out"})) return true;
  if (Contains(text, "Failed to allocate request for ") && Contains(text, "on device ordinal")) return true;
  // The same words with "this is not a failure" only tell of a slower way.
  if (const auto asked = After(text, "_bfc) ran out of memory trying to allocate "))
    return Contains(*asked, "(rounded to ") && !Contains(*asked, "not a failure");
  const auto words = After(text, "RESOURCE_EXHAUSTED: ");
  return words && ContainsAny(*words, {"ut of memory", "Attempting to allocate ", "Attempting to reserve "});
}

// ... UNAVAILABLE: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.1.2.3:8476: Failed to connect to
// remote host: Connection refused
std::string_view GrpcAddress(std::string_view text) {
  const auto address = After(text, "ipv4:");
  if (!address) return {};
  const size_t port = address->find(':');
  if (port == std::string_view::npos) return {};
  return address->substr(0, address->find_first_not_of("0123456789", port + 1));
}

}  // namespace

LineUse ReadJax(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (TellsNoMemory(text)) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, "out of memory");
    if (!is_new) return LineUse::understood;
    record->subject = "out of memory";
    record->text = Capped(text);
    record->value2 = out.highest_step();
    return LineUse::understood;
  }
  const bool agent = Contains(text, "Coordination service agent in error status");
  if (ContainsAny(text, {"UNAVAILABLE: failed to connect to all addresses",
                         "UNAVAILABLE:failed to connect to all addresses"}) ||
      (agent && Contains(text, "UNAVAILABLE"))) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::store_unreachable, line, "coordination");
    if (is_new) record->text = Capped(text);
    if (record->subject.empty()) record->subject = Capped(GrpcAddress(text), 100);
    return LineUse::understood;
  }
  // TPU backend initialization is taking more than 60.0 seconds. Did you run your code on all TPU hosts?
  if (Contains(text, "TPU backend initialization is taking more than ")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::rendezvous_incomplete, line, "backend");
    if (is_new) record->subject = "waiting", record->text = Capped(text);
    return LineUse::understood;
  }
  // Somebody's key is not there after ten minutes: that process has not come so far.
  if ((agent && Contains(text, "DEADLINE_EXCEEDED")) || Contains(text, "GetKeyValue() timed out")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::rendezvous_incomplete, line, "coordination");
    if (is_new) record->text = Capped(text);
    return LineUse::understood;
  }
  // ... failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered
  if (Contains(text, "CUDA_ERROR_ECC_UNCORRECTABLE")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, "ecc");
    if (is_new) record->subject = "uncorrectable ECC error encountered", record->text = Capped(text);
    return LineUse::understood;
  }
  // ... cuda_blas.cc:459] failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED
  if (const auto status = After(text, "failed to create cublas handle: ")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "cublas");
    if (!is_new) return LineUse::understood;
    record->subject = "a CUDA error";
    record->text = "failed to create cublas handle: " + Capped(*status, 200);
    record->value2 = out.highest_step();
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

}  // namespace tacet
