// SPDX-License-Identifier: Apache-2.0
#include "launch/run_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/text_scan.h"
#include "launch/python_hook.h"

namespace tacet {
namespace fs = std::filesystem;
namespace {

// "20261115-193201", in UTC.
std::string StampOf(int64_t wall_ns) {
  const std::time_t seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  std::tm broken{};
  ::gmtime_r(&seconds, &broken);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &broken);
  return text;
}

std::string CleanName(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 60)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    name += plain ? c : '-';
  }
  while (!name.empty() && (name.front() == '-' || name.front() == '.')) name.erase(0, 1);
  return name.empty() ? "job" : name;
}

// mkdir alone decides who has the name.
Result<std::string> TakeFolder(const RunFolderWish& wish, const std::vector<std::string>& command, int64_t wall_ns) {
  std::error_code error;
  if (!wish.folder.empty()) {
    const std::string folder = wish.folder + (wish.part.empty() ? "" : "/" + wish.part);
    fs::create_directories(folder, error);
    if (!error && !fs::is_empty(folder, error))
      return Error{"'" + folder + "' is not empty", "a run needs a folder of its own: choose a new one"};
    if (error) return Error{"cannot create the run folder '" + folder + "': " + error.message(), ""};
    return fs::absolute(folder).lexically_normal().string();
  }
  fs::create_directories(wish.parent, error);
  if (error)
    return Error{"cannot create the folder '" + wish.parent + "': " + error.message(),
                 "choose another with --dir FOLDER"};
  const std::string name = CleanName(wish.name.empty() ? NameOfCommand(command) : wish.name);
  const std::string base = fs::absolute(wish.parent).lexically_normal().string() + "/" + StampOf(wall_ns) + "-" + name;
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    std::string path = base;
    if (attempt > 0) path += "-" + CleanName(wish.host);
    if (attempt > 1) path += "-" + std::to_string(attempt);
    if (::mkdir(path.c_str(), 0755) == 0) return path;
    if (errno != EEXIST)
      return Error{"cannot create the run folder '" + path + "': " + std::strerror(errno),
                   "choose another with --dir FOLDER"};
  }
  return Error{"cannot find a free name for the run folder below '" + wish.parent + "'", ""};
}

int NumberIn(const Environment& variables, std::string_view name) {
  for (const auto& [found, value] : variables) {
    std::string_view rest = value;
    int number = -1;
    if (found == name && TakeNumber(rest, &number) && rest.empty()) return number;
  }
  return -1;
}

// PyTorch ends the job when it cannot make its pipe, so this tries first: some network file systems have none.
std::optional<std::string> PlaceForPipes(const std::string& folder) {
  for (const std::string& place : {folder + "/flight", std::string("/tmp")}) {
    const std::string trial = place + "/.tacet-pipe-" + std::to_string(::getpid());
    if (::mkfifo(trial.c_str(), 0600) != 0) continue;
    ::unlink(trial.c_str());
    return place == "/tmp" ? "/tmp/tacet-" + std::to_string(::getpid()) + "-rank_" : place + "/pipe_rank_";
  }
  return std::nullopt;
}

void MoveBoxes(const RunPlaces& places) {
  std::error_code error;
  if (places.box_folder.empty() || !fs::exists(places.box_folder, error)) return;
  const std::string target = places.folder + "/boxes";
  fs::create_directories(target, error);
  fs::copy(places.box_folder, target, fs::copy_options::recursive | fs::copy_options::overwrite_existing, error);
  if (!error) fs::remove_all(places.box_folder, error);
}

}  // namespace

std::string PartOfJob(const Environment& variables, std::string_view host) {
  // Slurm's number of tasks is that of the step: a batch script is alone, however many tasks its job may start.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLaunchers = {
      {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
       {"SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
       {"PMI_SIZE", "MPI_LOCALRANKID"}}};
  for (const auto& [size, local] : kLaunchers) {
    if (NumberIn(variables, size) < 2) continue;
    const int number = NumberIn(variables, local);
    return CleanName(host) + (number > 0 ? "-" + std::to_string(number) : "");
  }
  return "";
}

std::string NameOfCommand(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i)
    if (command[i].ends_with(".py")) return fs::path(command[i]).stem().string();
  for (size_t i = 0; i + 1 < command.size(); ++i)
    if (command[i] == "-m" || command[i] == "--module") return command[i + 1];
  // The last word that is neither an option nor a number: "mpirun -n 4 ./solver".
  static constexpr std::array<std::string_view, 2> kLaunchers = {"mpirun", "srun"};
  const std::string first = command.empty() ? "" : fs::path(command[0]).filename().string();
  if (std::find(kLaunchers.begin(), kLaunchers.end(), first) != kLaunchers.end())
    for (size_t i = 1; i < command.size(); ++i)
      if (command[i].starts_with("./") || command[i].starts_with("/")) return fs::path(command[i]).filename().string();
  return first;
}

Result<RunPlaces> MakeRunFolder(const RunFolderWish& wish, const std::vector<std::string>& command, int64_t wall_ns) {
  auto folder = TakeFolder(wish, command, wall_ns);
  if (!folder) return folder.error();
  RunPlaces places;
  places.folder = *folder;
  std::error_code error;
  for (const char* part : {"nccl", "flight", "stacks", "python"})
    fs::create_directory(places.folder + "/" + part, error);
  if (error) return Error{"cannot write below '" + places.folder + "': " + error.message(), ""};
  places.pipe_prefix = PlaceForPipes(places.folder).value_or("");
  places.python_folder = places.folder + "/python";
  if (!WriteWholeFile(places.python_folder + "/sitecustomize.py", PythonHook())) places.python_folder.clear();
  places.plugin = FindPlugin();
  if (!places.plugin.empty())
    places.box_folder = "/dev/shm/tacet-run-" + std::to_string(::getuid()) + "-" + std::to_string(::getpid());
  return places;
}

bool WriteWholeFile(const std::string& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return false;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return ::close(file) == 0 && bytes.empty();
}

std::string ReadSmallFile(const std::string& path, size_t most) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return text;
  char buffer[1 << 14];
  while (text.size() < most) {
    const ssize_t got = ::read(file, buffer, std::min(sizeof buffer, most - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  ::close(file);
  return text;
}

void TidyRunFolder(const RunPlaces& places) {
  std::error_code error;
  MoveBoxes(places);
  fs::remove_all(places.folder + "/python", error);
  // Of the latest look, whenever that was; what counts was copied into "hang-1" or "last-look".
  fs::remove_all(places.folder + "/stacks", error);
  for (const char* part : {"flight", "nccl", "traces", "ranks"}) {
    const std::string folder = places.folder + "/" + part;
    std::vector<fs::path> useless;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      std::error_code ignored;
      if (fs::is_fifo(it->path(), ignored) || (fs::is_regular_file(it->path(), ignored) && it->file_size(ignored) == 0))
        useless.push_back(it->path());
    }
    for (const fs::path& path : useless) fs::remove(path, error);
    if (fs::is_empty(folder, error)) fs::remove(folder, error);
  }
}

std::string OwnProgram() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? "tacet" : path.string();
}

std::string FindPlugin() {
  constexpr const char* kName = "libnccl-profiler-tacet.so";
  const fs::path folder = fs::path(OwnProgram()).parent_path();
  for (const fs::path& place : {folder, folder / "../lib", folder / "../lib64", folder / "../lib/x86_64-linux-gnu",
                                folder / "../lib/aarch64-linux-gnu", folder / "../tacet"}) {  // pip install --target
    std::error_code error;
    if (fs::exists(place / kName, error)) return (place / kName).lexically_normal().string();
  }
  return "";
}

std::string HostName() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return "localhost";
  return name;
}

}  // namespace tacet
