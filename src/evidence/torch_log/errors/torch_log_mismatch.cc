// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_mismatch.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

std::string_view Bracketed(std::string_view text) {
  const size_t end = text.find(']');
  return text.substr(0, end == std::string_view::npos ? text.size() : end + 1);
}

// "TensorOptions(dtype=float (default), device=cuda, layout=...": only the device differs in earnest.
std::string_view DeviceOf(std::string_view text) {
  const auto device = After(text, "device=");
  return device ? device->substr(0, device->find_first_of(",) ")) : std::string_view();
}

struct Side {
  int32_t rank = -1;
  FingerPrint print;
};

// "Rank 0 is running collective: CollectiveFingerPrint(...)"; since 1.12 the other side may be the bare name of an
// operation.
Side ParseSide(std::string_view text) {
  Side side;
  side.rank = IntAfter<int32_t>(text, "Rank ").value_or(-1);
  if (const auto print = After(text, "CollectiveFingerPrint(")) {
    side.print = ParseFingerPrint(*print);
  } else if (auto name = After(text, "collective: ")) {
    std::string_view word = TakeWord(*name);
    if (word.ends_with('.')) word.remove_suffix(1);
    side.print.op = word;
  }
  return side;
}

void AddAspect(TorchLogRecord& record, std::string_view aspect, std::string_view first, std::string_view second) {
  // The operation explains a difference in shape, a shape one in nothing else: the first found names the report.
  if (record.subject.empty()) record.subject = std::string(aspect);
  if (!record.text.empty()) AppendCapped(record.text, "; ");
  AppendCapped(record.text, aspect);
  AppendCapped(record.text, ": ");
  AppendCapped(record.text, first.substr(0, 200));
  AppendCapped(record.text, " vs ");
  AppendCapped(record.text, second.substr(0, 200));
}

void CompareSides(const FingerPrint& first, const FingerPrint& second, TorchLogRecord& record) {
  if (first.op != second.op) AddAspect(record, "op", first.op, second.op);
  // 2.0 left out the other rank's tensors: what is not printed does not differ.
  const bool comparable = first.has_tensors && second.has_tensors;
  if (comparable && first.shape != second.shape) AddAspect(record, "shape", first.shape, second.shape);
  if (comparable && first.dtype != second.dtype) AddAspect(record, "dtype", first.dtype, second.dtype);
  if (comparable && DeviceOf(first.device) != DeviceOf(second.device))
    AddAspect(record, "device", DeviceOf(first.device), DeviceOf(second.device));
  if (first.seq >= 0 && second.seq >= 0 && first.seq != second.seq)
    AddAspect(record, "seq", std::to_string(first.seq), std::to_string(second.seq));
}

// "sent a tensor of shape [1000, 2048]." -> "[1000, 2048]"; "had type float32." -> "float32"
std::string_view ValueOfSide(std::string_view words) {
  if (const size_t open = words.find('['); open != std::string_view::npos) return Bracketed(words.substr(open));
  words = words.substr(0, words.find_first_of(".,"));
  const size_t blank = words.rfind(' ');
  return blank == std::string_view::npos ? words : words.substr(blank + 1);
}

// HorovodInternalError: Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [1000, 2048], but another
//   rank sent a tensor of shape [1001, 2048].
// HorovodInternalError: Mismatched data types: One rank had type float32, but another rank had type float64.
// HorovodInternalError: Mismatched collective operations: One rank did an allreduce, but another rank did an allgather.
// Its coordinator compares what the ranks submit, tells all of them, and names none.
LineUse ReadHorovodsCheck(const LogLine& line, RecordList& out) {
  auto what = After(line.text, "Mismatched ");
  const auto first = After(line.text, ": One rank "), second = After(line.text, ", but another rank ");
  if (!what || !first || !second) return LineUse::not_understood;
  *what = what->substr(0, what->find(':'));
  const std::string_view aspect = what->ends_with("tensor shapes")      ? "shape"
                                  : what->ends_with("data types")       ? "dtype"
                                  : what->ends_with("operations")       ? "op"
                                  : what->ends_with("device selection") ? "device"
                                                                        : "";
  if (aspect.empty()) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::mismatch_report, line, aspect);
  if (!is_new) return LineUse::understood;
  record->of_checker = true;
  if (aspect == "shape") record->op = Capped(TakeWord(*what), 60);
  record->object = Capped(ValueOfSide(*first), 200);
  record->cure = Capped(ValueOfSide(*second), 200);
  AddAspect(*record, aspect, record->object, record->cure);
  return LineUse::understood;
}

// [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 262144 vs
// 131072 gloo: a peer sent more bytes than this process receives in the same call.
LineUse ReadGloosCheck(const LogLine& line, RecordList& out) {
  auto sizes = After(line.text, "op.preamble.length <= op.nbytes. ");
  int64_t sent = -1, expected = -1;
  if (!sizes || !TakeNumber(*sizes, &sent) || !TakeLiteral(*sizes, " vs ") || !TakeNumber(*sizes, &expected))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::mismatch_report, line, "gloo");
  if (!is_new) return LineUse::understood;
  record->of_checker = true;
  record->file = kGloo;
  record->object = std::to_string(expected) + " bytes";
  record->cure = std::to_string(sent) + " bytes";
  record->count = expected;
  record->value2 = sent;
  AddAspect(*record, "shape", record->object, record->cure);
  return LineUse::understood;
}

}  // namespace

int64_t FingerPrint::Elements() const {
  if (shape.size() < 2) return -1;
  std::string_view sizes = shape.substr(1);
  int64_t product = 1, size = 0;
  while (TakeNumber(sizes, &size)) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) return -1;
    if (!TakeLiteral(sizes, ",")) break;
    SkipBlanks(sizes);
  }
  return product;  // "[]" is a scalar: one element
}

// SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[10, 20], TensorDtypes=Float,
// TensorDeviceTypes=TensorOptions(dtype=float ... SequenceNumber=3OpType=BARRIER) OpType=ALLGATHER, TensorShape=[6],
// TensorDtypes=Double, ...
FingerPrint ParseFingerPrint(std::string_view text) {
  FingerPrint print;
  print.seq = IntAfter(text, "SequenceNumber=").value_or(-1);
  if (const auto op = After(text, "OpType=")) print.op = op->substr(0, op->find_first_of(",)"));
  const auto shape = After(text, "TensorShape=");
  print.has_tensors = shape.has_value();
  if (shape) print.shape = Bracketed(*shape);
  if (const auto dtype = After(text, "TensorDtypes="))
    print.dtype = dtype->substr(0, dtype->find(", TensorDeviceTypes"));
  if (const auto device = After(text, "TensorDeviceTypes=")) print.device = *device;
  return print;
}

// RuntimeError: Detected mismatch between collectives on ranks. Rank 3 is running collective: CollectiveFingerPrint(
//   SequenceNumber=17, OpType=ALLREDUCE, TensorShape=[262144], TensorDtypes=Float, ...), but Rank 1 is running
//   collective: CollectiveFingerPrint(SequenceNumber=17, OpType=ALLREDUCE, TensorShape=[8388608], ...).Collectives
//   differ in ...
LineUse ReadMismatch(const LogLine& line, RecordList& out) {
  const auto body = After(line.text, "Detected mismatch between collectives on ranks.");
  if (!body) {
    const LineUse use = ReadGloosCheck(line, out);
    return use == LineUse::not_understood ? ReadHorovodsCheck(line, out) : use;
  }
  const std::string_view sides = body->substr(0, body->find("Collectives differ in the following"));
  const size_t middle = sides.find(", but Rank ");
  const Side first = ParseSide(sides.substr(0, middle));
  const Side second = middle == std::string_view::npos ? Side() : ParseSide(sides.substr(middle + 6));
  const std::string key = std::to_string(first.rank) + '/' + std::to_string(second.rank) + '/' +
                          std::to_string(first.print.seq) + '/' + std::string(first.print.op.substr(0, 60));
  const auto [record, is_new] = out.AddOnce(TorchLogKind::mismatch_report, line, key);
  if (!is_new) return LineUse::understood;
  record->group_rank = first.rank;
  record->peer_group_rank = second.rank;
  record->seq = first.print.seq;
  record->op = Capped(first.print.op, 60);
  record->count = first.print.has_tensors ? first.print.Elements() : -1;
  // Before 1.12 only one side is told.
  if (middle != std::string_view::npos) CompareSides(first.print, second.print, *record);
  if (first.print.has_tensors && second.print.has_tensors && first.print.shape != second.print.shape) {
    record->value = first.print.Elements();
    record->value2 = second.print.Elements();
    record->object = Capped(first.print.shape, 200);
    record->cure = Capped(second.print.shape, 200);
  }
  if (record->subject == "op") {
    record->object = Capped(first.print.op, 60);
    record->cure = Capped(second.print.op, 60);
  }
  if (record->subject == "seq") record->value2 = second.print.seq;
  // Of different operations the sizes say nothing; whether they stand at the same place does.
  if (record->subject == "op") {
    const bool apart = first.print.seq >= 0 && second.print.seq >= 0 && first.print.seq != second.print.seq;
    record->value2 = apart ? second.print.seq : -1;
  }
  if (record->text.empty()) record->text = Capped(line.text);
  return LineUse::understood;
}

}  // namespace tacet
