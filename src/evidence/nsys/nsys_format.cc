// SPDX-License-Identifier: Apache-2.0
#include "base/text_scan.h"
#include "evidence/format.h"
#include "nsys_import.h"

namespace tacet {
namespace {

// A SQLite file whose schema, on its first pages, has tables that only Nsight Systems makes. The schema of a long
// export may lie further back; then the name decides.
Recognition Recognise(std::string_view prefix, std::string_view filename) {
  if (!prefix.starts_with(std::string_view("SQLite format 3\0", 16))) return Recognition::no;
  for (const std::string_view sign : {"CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "NVTX_EVENTS", "META_DATA_CAPTURE",
                                      "ENUM_NSYS_", "ENUM_CUDA_", "CREATE TABLE StringIds"})
    if (Contains(prefix, sign)) return Recognition::yes;
  return filename.ends_with(".sqlite") ? Recognition::maybe : Recognition::no;
}

}  // namespace

extern const Format kNsysFormat;
const Format kNsysFormat = {
    "nsys",
    "Nsight Systems SQLite export: nsys profile --trace=cuda,nvtx ...; nsys export --type sqlite "
    "report.nsys-rep",
    Recognise, ReadNsys};

}  // namespace tacet
