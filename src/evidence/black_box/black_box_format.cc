// SPDX-License-Identifier: Apache-2.0
#include "evidence/black_box/black_box_import.h"
#include "evidence/black_box/black_box_parse.h"
#include "evidence/format.h"

namespace tacet {

// The first eight bytes are "TACETBOX".
static Recognition Recognise(std::string_view prefix, std::string_view) {
  return LooksLikeBlackBox(prefix) ? Recognition::yes : Recognition::no;
}

extern const Format kBlackBoxFormat;
const Format kBlackBoxFormat = {
    .name = "black_box",
    .description =
        "black box of the Tacet profiler plugin: NCCL_PROFILER_PLUGIN=tacet, then /dev/shm/tacet/<job>/*.box",
    .recognise = Recognise,
    .read = ImportBlackBox,
};

}  // namespace tacet
