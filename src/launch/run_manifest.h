// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/capture.h"
#include "launch/run_settings.h"
#include "report/report.h"

namespace tacet {

// A hang that was seen during the run.
struct SeenHang {
  int64_t wall_ns = 0;
  double still_s = 0;
  std::string folder;  // below the run folder
  std::string headline;
  std::vector<CaptureNote> missing;
};

// manifest.json of a run: what was started, how, where, and how it ended. Values that look like secrets are replaced.
struct RunManifest {
  std::vector<std::string> command;
  std::string level, name, folder;  // folder: where the run was started
  std::string host, user;
  std::vector<RunSetting> settings;
  Environment inherited;  // relevant variables only
  std::vector<std::pair<std::string, std::string>> versions;
  int64_t began_wall_ns = 0, ended_wall_ns = 0;  // 0: still running
  int exit_code = -1, signal = 0;
  bool stopped_on_request = false;  // by a signal to us, or by us after a hang
  int stop_signal = 0;              // the signal to us; 0: there was none
  int64_t stop_wall_ns = 0;         // when it arrived
  uint64_t output_bytes = 0, dropped_bytes = 0;
  std::vector<SeenHang> hangs;
  std::string status, cause, headline;  // of the verdict; empty: none was needed
  std::vector<int> ranks;
};

std::string RenderManifest(const RunManifest& manifest);

// The same back again, as far as a postmortem needs it. False where the text is none.
bool ParseManifest(std::string_view text, RunManifest* manifest);

// Versions of tacet, the kernel and, where they can be had without starting anything, NVIDIA's driver.
std::vector<std::pair<std::string, std::string>> ReadVersions();

}  // namespace tacet
