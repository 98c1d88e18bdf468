// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_usage.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

LineUse AddUsageError(const LogLine& line, std::string_view words, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "arguments");
  if (!is_new) return LineUse::understood;
  record->subject = "an error of its command line";
  record->text = Capped(Trim(words), 300);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

// The words of argparse's own that no program but one with its parser prints.
bool IsArgparseMessage(std::string_view words) {
  if (words.starts_with("unrecognized arguments: ") || words.starts_with("the following arguments are required: ") ||
      words.starts_with("ambiguous option: "))
    return true;
  return words.starts_with("argument ") &&
         ContainsAny(words, {": invalid choice: ", " value: ", ": expected one argument", ": expected at least one",
                             ": not allowed with argument "});
}

}  // namespace

// argparse: "train.py: error: unrecognized arguments: --local-rank=0"
//           "torchrun: error: the following arguments are required: training_script, training_script_args"
// click:    "Error: No such option: --lrr", "Error: Missing option '--data'.", "Error: Invalid value for '--lr': ..."
// Hydra:    "Could not override 'optim.lrr'.", "Error parsing override 'lr=='"
// absl:     "FATAL Flags parsing error:" and then "  Unknown command line flag 'lrr'. Did you mean: lr ?"
LineUse ReadUsageError(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (const size_t at = text.find(": error: "); at != std::string_view::npos && at < 200) {
    const std::string_view program = text.substr(0, at), words = text.substr(at + 9);
    if (program.ends_with(".py")) return AddUsageError(line, words, out);
    // The launcher or a module: the name says whose command line it is.
    if (IsArgparseMessage(words) && program.find_first_of("[({:") == std::string_view::npos)
      return AddUsageError(line, text, out);
    return LineUse::not_understood;
  }
  if (text.starts_with("Error: ") &&
      ContainsAny(text.substr(0, 60), {"Error: No such option", "Error: Missing option ", "Error: Missing argument ",
                                       "Error: Invalid value for ", "Error: Got unexpected extra argument"}))
    return AddUsageError(line, text.substr(7), out);
  if (text.starts_with("Could not override '") || text.starts_with("Error parsing override '"))
    return AddUsageError(line, text, out);
  // Open MPI: "There are not enough slots available in the system to satisfy the 16", and "slots that were requested"
  // below it.
  if (text.starts_with("There are not enough slots available in the system")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "slots");
    if (is_new) record->subject = "an error of mpirun", record->text = Capped(text, 300);
    return LineUse::understood;
  }
  if (text.ends_with("Flags parsing error:")) return AddUsageError(line, "", out);
  if (text.starts_with("Unknown command line flag '")) {
    TorchLogRecord* said = out.Said(TorchLogKind::exception, line, "arguments");
    if (said == nullptr || !said->text.empty()) return AddUsageError(line, text, out);
    said->text = Capped(text, 300);
    said->source = line.source;
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

}  // namespace tacet
