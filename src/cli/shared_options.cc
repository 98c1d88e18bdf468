// SPDX-License-Identifier: Apache-2.0
#include "cli/shared_options.h"

#include "cli/console.h"

namespace tacet {

Result<LoadOptions> ReadLoadOptions(const Options& options) {
  LoadOptions load;
  auto threads = options.Number("--threads", load.threads, 1, 1024);
  if (!threads) return threads.error();
  load.threads = static_cast<unsigned>(*threads);
  auto megabytes = options.Number("--max-file-mb", static_cast<long>(load.max_file_bytes >> 20), 1, 1 << 20);
  if (!megabytes) return megabytes.error();
  load.max_file_bytes = static_cast<uint64_t>(*megabytes) << 20;
  return load;
}

Result<OutputOptions> ReadOutputOptions(const Options& options) {
  OutputOptions out;
  out.path = options.Value("--output").value_or("");
  out.page = options.Value("--html").value_or("");
  out.verbose = options.Has("--verbose");
  const std::string colour = options.Value("--color").value_or("auto");
  if (colour != "auto" && colour != "always" && colour != "never")
    return Error{"--color takes auto, always or never, not '" + colour + "'", ""};
  out.colour = colour == "always" || (colour == "auto" && out.path.empty() && StandardOutputTakesColour());
  return out;
}

}  // namespace tacet
