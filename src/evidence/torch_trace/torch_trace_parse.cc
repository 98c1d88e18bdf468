// SPDX-License-Identifier: Apache-2.0
#include "torch_trace_parse.h"

#include <charconv>
#include <cmath>

#include "base/parse_double.h"
#include "base/text_scan.h"
#include "json_span.h"

namespace tacet {
namespace {

constexpr size_t npos = std::string_view::npos;
// Times beyond this are rubbish; sums of two of them still fit.
constexpr int64_t kMaxNs = int64_t{1} << 61;

// Walks the members of one object.
class ObjectWalk {
 public:
  explicit ObjectWalk(std::string_view text) : text_(text) {}

  // The next key and its value as written; false at the end or where the text makes no sense.
  bool Next(std::string_view* key, std::string_view* value) {
    Skip();
    if (at_ >= text_.size() || text_[at_] == '}') return false;
    if (!TakeKey(key) && !(FindNextKey() && TakeKey(key))) return false;
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    const size_t begin = at_;
    at_ = ValueEnd(begin);
    *value = text_.substr(begin, at_ - begin);
    return true;
  }

 private:
  void Skip() {
    while (at_ < text_.size() && (IsSpace(text_[at_]) || text_[at_] == ',')) ++at_;
  }

  // "key" and its colon at at_. Keys are short and plain: the first quote ends them.
  bool TakeKey(std::string_view* key) {
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    const size_t end = text_.find('"', at_ + 1);
    if (end == npos) return false;
    size_t colon = end + 1;
    while (colon < text_.size() && IsSpace(text_[colon])) ++colon;
    if (colon >= text_.size() || text_[colon] != ':') return false;
    *key = text_.substr(at_ + 1, end - at_ - 1);
    at_ = colon + 1;
    return true;
  }

  // After a string that seemed to end early, such as "copy<"a", 1>": the next quote behind a comma that begins a key.
  bool FindNextKey() {
    std::string_view key;
    while ((at_ = text_.find(',', at_)) != npos) {
      Skip();
      const size_t begin = at_;
      if (TakeKey(&key)) {
        at_ = begin;
        return true;
      }
    }
    at_ = text_.size();
    return false;
  }

  size_t ValueEnd(size_t at) const {
    if (at >= text_.size()) return text_.size();
    size_t end = at;
    if (text_[at] == '"') {
      end = FindStringEnd(text_, at + 1);
    } else if (text_[at] == '{' || text_[at] == '[') {
      const JsonSpan span = FindSpan(text_, at);
      end = span.suspicious ? FindSpanTolerant(text_, at) : span.end;
    } else {
      while (end < text_.size() && text_[end] != ',' && text_[end] != '}' && text_[end] != ']' && !IsSpace(text_[end]))
        ++end;
    }
    return end == npos ? text_.size() : end;
  }

  std::string_view text_;
  size_t at_ = 1;  // behind the brace
};

std::string_view Unquote(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') return value.substr(1, value.size() - 2);
  return value;
}

// Numbers are sometimes written as strings: "correlation": "123".
int64_t ToInt(std::string_view value) {
  value = Unquote(value);
  int64_t number = -1;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

TraceEventKind KindOfCategory(std::string_view category) {
  if (category == "kernel" || category == "Kernel") return TraceEventKind::kernel;
  if (category == "gpu_memcpy" || category == "Memcpy") return TraceEventKind::copy;
  if (category == "gpu_memset" || category == "Memset") return TraceEventKind::memset;
  if (category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime" || category == "hip_runtime")
    return TraceEventKind::runtime;
  if (category == "user_annotation") return TraceEventKind::annotation;
  return TraceEventKind::other;
}

bool IsMatrixOperation(std::string_view name) {
  if (!name.starts_with("aten::")) return false;
  name.remove_prefix(6);
  // The leaves only: aten::linear and aten::matmul call one of these.
  for (const std::string_view one :
       {"mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_grouped_mm", "convolution", "convolution_backward",
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward",
        "_scaled_dot_product_efficient_attention", "_scaled_dot_product_efficient_attention_backward",
        "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_cudnn_attention_backward"})
    if (name == one) return true;
  return false;
}

void ParseCollectiveArgument(std::string_view key, std::string_view value, CollectiveArguments& out) {
  if (key == "Collective name")
    out.name = Unquote(value);
  else if (key == "In msg nelems")
    out.in_elements = ToInt(value);
  else if (key == "Out msg nelems")
    out.out_elements = ToInt(value);
  else if (key == "Group size")
    out.group_size = ToInt(value);
  else if (key == "dtype")
    out.type = Unquote(value);
  else if (key == "Process Group Name")
    out.group_name = Unquote(value);
  else if (key == "Process Group Description")
    out.group_description = Unquote(value);
  else if (key == "Process Group Ranks")
    out.group_ranks = Unquote(value);
  else if (key == "Src Rank")
    out.source = ToInt(value);
  else if (key == "Dst Rank")
    out.destination = ToInt(value);
  else if (key == "Seq")
    out.seq = ToInt(value);
}

void ParseArguments(std::string_view text, TraceEventRecord& out) {
  if (text.empty() || text.front() != '{') return;
  ObjectWalk walk(text);
  std::string_view key, value;
  while (walk.Next(&key, &value)) {
    if (key == "correlation")
      out.correlation = ToInt(value);
    else if (key == "External id" || key == "external id")
      out.external_id = ToInt(value);
    else if (key == "stream")
      out.stream = ToInt(value);
    else if (key == "device")
      out.device = ToInt(value);
    else if (key == "bytes" || key == "Bytes")
      out.bytes = ToInt(value);
    else if (key == "Device Type")
      out.device_type = ToInt(value);
    else if (key == "Device Id")
      out.device = ToInt(value);
    else if (key == "Total Allocated")
      out.allocated = ToInt(value);
    else if (key == "Total Reserved")
      out.reserved = ToInt(value);
    else if (key == "Input Dims")
      out.input_dims = value;
    else if (key == "Input type")
      out.input_types = value;
    else
      ParseCollectiveArgument(key, value, out.collective);
  }
}

// What the name says about an event whose category alone does not tell.
TraceEventKind KindOfName(std::string_view category, std::string_view name) {
  if (category == "cpu_op" || category == "Operator") {
    if (name == "record_param_comms") return TraceEventKind::communication;
    if (IsMatrixOperation(name)) return TraceEventKind::matrix;
    if (name == "torch::autograd::AccumulateGrad") return TraceEventKind::gradient;
  }
  if (name == "[memory]" || name == "[OutOfMemory]") return TraceEventKind::memory;
  return TraceEventKind::other;
}

}  // namespace

int64_t MicrosecondsToNs(std::string_view text, int64_t otherwise) {
  text = Unquote(text);
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  int64_t ns = 0;
  const char* const digits = at;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) {
    if (ns > kMaxNs / 10000) return otherwise;
    ns = ns * 10 + (*at - '0');
  }
  if (at == digits) return otherwise;
  ns *= 1000;
  if (at != end && *at == '.') {
    int64_t scale = 100;
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, scale /= 10) ns += scale * (*at - '0');
  }
  if (at != end && (*at == 'e' || *at == 'E')) {
    double value = 0;
    if (ParseDouble(text.data(), end, value).ec != std::errc()) return otherwise;  // 1e400
    if (!std::isfinite(value) || std::fabs(value) > static_cast<double>(kMaxNs / 1000)) return otherwise;
    return static_cast<int64_t>(std::llround(value * 1000));
  }
  return negative ? -ns : ns;
}

bool ParseTraceEvent(std::string_view text, TraceEventRecord* out) {
  *out = TraceEventRecord();
  if (text.size() < 2 || text.front() != '{') return false;
  ObjectWalk walk(text);
  std::string_view key, value, category, arguments, phase;
  bool any = false;
  while (walk.Next(&key, &value)) {
    any = true;
    if (key == "ph") {
      phase = Unquote(value);
      // Flows, metadata and counters: nothing in them that the events they join do not say.
      if (phase != "X" && phase != "i" && phase != "I") return true;
    } else if (key == "cat") {
      category = Unquote(value);
      if (category == "python_function" || category == "ac2g" || category == "fwdbwd") return true;
    } else if (key == "name") {
      out->name = Unquote(value);
      if (category == "cpu_op" && KindOfName(category, out->name) == TraceEventKind::other) return true;
    } else if (key == "pid") {
      out->pid = ToInt(value);
    } else if (key == "tid") {
      out->tid = ToInt(value);
    } else if (key == "ts") {
      out->start_ns = MicrosecondsToNs(value, INT64_MIN);
    } else if (key == "dur") {
      out->duration_ns = MicrosecondsToNs(value, 0);
    } else if (key == "args") {
      arguments = value;
    }
  }
  if (!any) return false;
  out->kind = phase == "X" ? KindOfCategory(category) : TraceEventKind::other;
  if (out->kind == TraceEventKind::other) out->kind = KindOfName(category, out->name);
  if (out->kind == TraceEventKind::other) return true;
  if (out->start_ns == INT64_MIN || out->duration_ns < 0) return false;
  ParseArguments(arguments, *out);
  return true;
}

std::vector<std::vector<int64_t>> ParseDims(std::string_view text) {
  std::vector<std::vector<int64_t>> dims;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '[') {
      if (++depth == 2) dims.emplace_back();
    } else if (c == ']') {
      --depth;
    } else if (depth >= 2 && c >= '0' && c <= '9') {
      int64_t size = 0;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), size);
      if (error == std::errc()) dims.back().push_back(size);
      at = static_cast<size_t>(end - text.data()) - 1;
    }
  }
  return dims;
}

std::vector<int32_t> ParseGroupRanks(std::string_view text) {
  std::vector<int32_t> ranks;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '.') return {};
    if (text[at] < '0' || text[at] > '9') continue;
    int32_t rank = -1;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error != std::errc()) return {};
    ranks.push_back(rank);
    at = static_cast<size_t>(end - text.data()) - 1;
  }
  return ranks;
}

}  // namespace tacet
