// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/box_reading.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "evidence/black_box/black_box_import.h"

namespace tacet::fake {

ReadBox ReadOneBox(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::filesystem::file_size(path), '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(in.gcount()));
  ReadBox read;
  read.path = path;
  read.box = ParseBlackBox(bytes);
  ImportBlackBox({path, bytes}, read.fragment);
  return read;
}

std::vector<ReadBox> ReadBoxes(const std::string& folder) {
  std::vector<ReadBox> boxes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".box") boxes.push_back(ReadOneBox(entry.path().string()));
  std::sort(boxes.begin(), boxes.end(), [](const ReadBox& a, const ReadBox& b) {
    return a.rank() != b.rank() ? a.rank() < b.rank() : a.path < b.path;
  });
  return boxes;
}

static void SetEnvironment(const BoxFolder& folder, const Environment& environment) {
  for (const char* name : {"SLURM_JOB_ID", "RANK", "WORLD_SIZE", "TACET_JSON_DIR", "TACET_PROM_DIR", "TACET_JOB"})
    unsetenv(name);
  setenv("TACET_BOX_DIR", folder.path().c_str(), 1);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
}

std::string PluginPath() { return TACET_PLUGIN_FILE; }

std::string RunHost(const std::string& arguments, const BoxFolder& folder, const Environment& environment) {
  std::string command = "TACET_BOX_DIR=" + folder.path();
  for (const auto& [name, value] : environment) command += " " + name + "='" + value + "'";
  command += std::string(" ") + TACET_HOST_FILE + " --plugin " + PluginPath() + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[512];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
  if (pipe != nullptr) pclose(pipe);
  return output;
}

int RunInChild(const BoxFolder& folder, const std::function<void()>& work, const Environment& environment) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    SetEnvironment(folder, environment);
    work();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace tacet::fake
