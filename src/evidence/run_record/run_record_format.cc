// SPDX-License-Identifier: Apache-2.0
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/run_record/run_record_import.h"
#include "evidence/run_record/run_record_parse.h"

namespace tacet {

// Our own answers must not be read as evidence: they quote the lines of logs.
static Recognition RecogniseRunRecord(std::string_view prefix, std::string_view) {
  if (SchemaOf(prefix).starts_with("tacet.")) return Recognition::yes;
  if (prefix.starts_with("==> status <==\nName:")) return Recognition::yes;  // /proc of a rank, for people
  // Counters of the network, and nvidia-smi's states and processes: kept beside the rest for people.
  if (prefix.starts_with("/sys/class/net/") || prefix.starts_with("/sys/class/infiniband/") ||
      prefix.starts_with("pid, gpu_bus_id, used_gpu_memory"))
    return Recognition::yes;
  if (Contains(prefix.substr(0, 256), "==============NVSMI LOG==============")) return Recognition::yes;
  const std::string_view head = prefix.substr(0, 4096);
  if (Contains(head, "\"\"\"Written by `tacet run`.")) return Recognition::yes;  // the Python hook
  if (Contains(head, "<title>Tacet") || prefix.starts_with("# Postmortem: ")) return Recognition::yes;
  if (Contains(head, "<testsuites name=\"tacet\"") || Contains(head, "\"driver\":{\"name\":\"tacet\""))
    return Recognition::yes;  // for CI
  return Recognition::no;
}

extern const Format kRunRecordFormat;
const Format kRunRecordFormat = {
    .name = "run_record",
    .description = "what tacet run, capture and collect record about a job: watch.json, manifest.json, verdicts",
    .recognise = RecogniseRunRecord,
    .read = ImportRunRecord,
};

}  // namespace tacet
