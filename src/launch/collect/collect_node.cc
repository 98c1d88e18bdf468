// SPDX-License-Identifier: Apache-2.0
#include "launch/collect/collect_node.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/redact.h"
#include "base/text_scan.h"
#include "launch/collect/secret_words.h"
#include "launch/host_state.h"
#include "launch/run_folder.h"
#include "launch/run_settings.h"

namespace tacet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kDeepestFolder = 100;

class NodeCollection {
 public:
  NodeCollection(const NodeWish& wish, const std::function<bool(BundleEntry)>& take) : wish_(wish), take_(take) {}

  std::vector<CaptureNote> Do() {
    std::vector<std::string> paths = wish_.paths;
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    for (const std::string& path : paths) AddPath(path, 0);
    if (wish_.host_state)
      for (CapturedText& captured : CaptureHost(true, wish_.command_ms)) {
        if (!captured.text.empty()) Give({"host/" + captured.name, std::move(captured.text), 0, 0, {}, ""});
        if (!captured.problem.empty()) notes_.push_back({captured.name, captured.problem});
      }
    if (wish_.capture || !wish_.pids.empty() || !wish_.slurm_job.empty()) AddProcesses();
    return std::move(notes_);
  }

 private:
  void Give(BundleEntry entry) {
    if (ended_) return;
    if (entry.original_bytes == 0) entry.original_bytes = entry.bytes.size();
    if (taken_ + entry.bytes.size() > wish_.most_bytes) {
      notes_.push_back({entry.name, "the limit for all files together is reached"});
      return;
    }
    CleanEntry(entry, wish_.most_file_bytes);
    CutText(entry, wish_.most_file_bytes);
    taken_ += entry.bytes.size();
    if (!take_(std::move(entry))) ended_ = true;
  }

  // Links are not followed below a path that was named: what they lead to was not.
  void AddPath(const std::string& path, size_t depth) {
    struct stat what {};
    const int failed = depth == 0 ? ::stat(path.c_str(), &what) : ::lstat(path.c_str(), &what);
    if (failed != 0) {
      notes_.push_back({path, std::strerror(errno)});
      return;
    }
    if (S_ISDIR(what.st_mode)) {
      std::error_code error;
      std::vector<std::string> names;
      for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
        names.push_back(it->path().filename().string());
      if (error) notes_.push_back({path, error.message()});
      if (depth == kDeepestFolder) return notes_.push_back({path, "nested too deeply"});
      std::sort(names.begin(), names.end());
      for (const std::string& name : names) AddPath((fs::path(path) / name).string(), depth + 1);
    } else if (S_ISREG(what.st_mode)) {
      AddFile(path, static_cast<uint64_t>(what.st_size), what.st_mtime);
    }
  }

  // The front and the back of a file that is too large; the middle is not read at all.
  void AddFile(const std::string& path, uint64_t size, int64_t modified_s) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return notes_.push_back({path, std::strerror(errno)});
    BundleEntry entry;
    entry.name = "files/" + SafeName(RedactSecrets(fs::absolute(path).lexically_normal().string()).text);
    entry.modified_s = modified_s;
    entry.original_bytes = size;
    const uint64_t most = wish_.most_file_bytes;
    const bool whole = size <= most;
    int error = ReadPart(file, 0, whole ? most : most / 4, entry.bytes);
    if (!whole && !IsBinaryText(entry.bytes) && DetectsNoCompression(entry.bytes)) {
      entry.bytes += "\n[" + std::to_string(size - most) + " bytes left out by tacet collect]\n";
      if (error == 0) error = ReadPart(file, size - (most - most / 4), most - most / 4, entry.bytes);
      entry.changed = "cut: " + std::to_string(size - most) + " bytes in the middle left out";
    } else if (!whole) {
      entry.changed = "cut: only the first " + std::to_string(entry.bytes.size()) + " bytes";
    }
    ::close(file);
    if (error != 0) notes_.push_back({path, std::string("read in part only: ") + std::strerror(error)});
    Give(std::move(entry));
  }

  static bool DetectsNoCompression(std::string_view bytes) {
    return !bytes.starts_with("\x1f\x8b") && !bytes.starts_with("\x28\xb5\x2f\xfd");
  }

  static int ReadPart(int file, uint64_t from, uint64_t most, std::string& out) {
    char buffer[1 << 16];
    for (uint64_t done = 0; done < most;) {
      const ssize_t got = ::pread(file, buffer, static_cast<size_t>(std::min<uint64_t>(sizeof buffer, most - done)),
                                  static_cast<off_t>(from + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno;
      if (got == 0) return 0;
      out.append(buffer, static_cast<size_t>(got));
      done += static_cast<uint64_t>(got);
    }
    return 0;
  }

  std::vector<JobMemberProcess> FindProcesses(ProcessSearch& search) const {
    search.pids = wish_.pids;
    if (!wish_.slurm_job.empty())
      for (fs::directory_iterator it("/proc"), end; it != end; ++it) {
        const std::string file = it->path().filename().native();
        std::string_view name = file;
        int64_t pid = 0;
        if (!TakeNumber(name, &pid) || !name.empty() || pid == ::getpid()) continue;
        const std::string variables = ReadSmallFile(it->path().string() + "/environ");
        if (EnvironHas(variables, "SLURM_JOB_ID", wish_.slurm_job)) search.pids.push_back(pid);
      }
    return FindJobProcesses(search);
  }

  void AddProcesses() {
    LookerOptions options;
    const std::vector<JobMemberProcess> processes = FindProcesses(options.search);
    if (processes.empty()) return notes_.push_back({"processes", "no process of the job is here"});
    std::string text;
    for (const JobMemberProcess& process : processes) text += DescribeStart(process);
    Give({"host/processes.txt", std::move(text), 0, 0, {}, ""});
    if (!wish_.capture) return;
    const std::string folder = TemporaryFolder();
    if (folder.empty()) return notes_.push_back({"stacks", "no folder can be written: are /tmp and /dev/shm full?"});
    RankLooker looker(options);
    looker.Look(WallNs(), false);
    CapturePlan plan;
    plan.folder = folder;
    plan.ask_ras = false;
    plan.command_ms = wish_.command_ms;
    for (CaptureNote& note : Capture(looker, plan)) notes_.push_back(std::move(note));
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename().string());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names)
      Give({"capture/" + SafeName(name), ReadSmallFile(folder + "/" + name, 64 << 20), 0, 0, {}, ""});
    fs::remove_all(folder, error);
  }

  // Number, command line and what of the environment concerns communication.
  static std::string DescribeStart(const JobMemberProcess& process) {
    const std::string folder = "/proc/" + std::to_string(process.pid);
    std::vector<std::string> command;
    const auto split = [](const std::string& bytes, const std::function<void(std::string_view)>& take) {
      for (std::string_view rest = bytes; !rest.empty();) {
        take(TakeUntil(rest, '\0'));
        if (!rest.empty()) rest.remove_prefix(1);
      }
    };
    split(ReadSmallFile(folder + "/cmdline"), [&](std::string_view word) { command.emplace_back(word); });
    std::string text = "==> pid " + std::to_string(process.pid) + " rank " + std::to_string(process.rank) + " <==\n";
    for (const std::string& word : HideSecretsInCommand(command)) text += word + " ";
    text += "\n";
    std::vector<std::string> variables;
    split(ReadSmallFile(folder + "/environ"), [&](std::string_view entry) {
      const std::string_view name = entry.substr(0, entry.find('='));
      if (IsRelevantVariable(name) && name.size() < entry.size())
        variables.push_back(std::string(name) + "=" + HideSecret(name, entry.substr(name.size() + 1)));
    });
    std::sort(variables.begin(), variables.end());
    for (const std::string& variable : variables) text += variable + "\n";
    return text;
  }

  static std::string TemporaryFolder() {
    const char* own = std::getenv("TMPDIR");
    for (std::string place : {std::string(own != nullptr ? own : ""), std::string("/tmp"), std::string("/dev/shm")}) {
      if (place.empty()) continue;
      place += "/tacet-collect-XXXXXX";
      if (::mkdtemp(place.data()) == nullptr) continue;
      if (WriteWholeFile(place + "/trial", std::string(1 << 16, 'x'))) {
        ::unlink((place + "/trial").c_str());
        return place;
      }
      std::error_code error;
      fs::remove_all(place, error);
    }
    return "";
  }

  const NodeWish& wish_;
  const std::function<bool(BundleEntry)>& take_;
  std::vector<CaptureNote> notes_;
  uint64_t taken_ = 0;
  bool ended_ = false;
};

}  // namespace

std::vector<CaptureNote> CollectNode(const NodeWish& wish, const std::function<bool(BundleEntry)>& take) {
  return NodeCollection(wish, take).Do();
}

}  // namespace tacet
