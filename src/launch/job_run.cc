// SPDX-License-Identifier: Apache-2.0
#include "launch/job_run.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/redact.h"
#include "base/text_scan.h"
#include "launch/collect/secret_words.h"
#include "launch/command_run.h"
#include "launch/host_state.h"
#include "launch/job_watch.h"
#include "launch/lint_sources.h"
#include "launch/packet_ring.h"
#include "launch/run_verdict.h"
#include "render/render_names.h"
#include "render/text_layout.h"

extern "C" char** environ;

namespace tacet {
namespace {

constexpr int64_t kKillAfterMs = 30'000;  // as torchrun and Slurm give their processes
constexpr int64_t kAskAtEndMs = 5'000;

Environment OwnEnvironment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Environment WithSettings(Environment variables, const std::vector<RunSetting>& settings) {
  for (const RunSetting& setting : settings) {
    if (setting.kept) continue;
    std::erase_if(variables, [&](const auto& one) { return one.first == setting.name; });
    variables.emplace_back(setting.name, setting.value);
  }
  return variables;
}

// One line per setting, the rest of it indented.
std::string WrapSettings(std::string_view lines) {
  constexpr size_t kWidth = 100, kIndent = 2, kMore = 6;
  std::string out;
  while (!lines.empty()) {
    std::string_view line = TakeUntil(lines, '\n');
    if (!lines.empty()) lines.remove_prefix(1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    size_t indent = kIndent;
    for (const std::string& part : Wrap(line, kWidth - kMore)) {
      out.append(indent, ' ').append(part).append("\n");
      indent = kMore;
    }
  }
  return out;
}

std::string EffectiveValue(const std::vector<RunSetting>& settings, std::string_view name) {
  for (const RunSetting& setting : settings)
    if (setting.name == name) return setting.kept ? setting.users_value : setting.value;
  return "";
}

std::string UserName() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : std::to_string(::getuid());
}

class JobRun {
 public:
  explicit JobRun(const JobRunOptions& options) : options_(options) {}

  Result<RunEnd> Do(int* exit_code) {
    const HeldSignals signals;
    const Environment inherited = OwnEnvironment();
    RunFolderWish wish = options_.folder;
    wish.part = PartOfJob(inherited, wish.host);
    auto places = MakeRunFolder(wish, options_.command, WallNs());
    if (!places) return places.error();
    places_ = *places;
    places_.per_rank_output = options_.per_rank_output;
    places_.profile_steps = options_.profile_steps;
    settings_ = ChooseSettings(options_.level, places_, inherited);
    BeginManifest(inherited);
    Announce();
    WarnOfSettings(WithSettings(inherited, settings_));
    KeepManifest();
    PacketRing packets;
    if (options_.packets) Tell(packets.Start(places_.folder));
    auto job = JobProcess::Start(options_.command, WithSettings(inherited, settings_), signals, exit_code);
    if (!job) {
      Finish(RunEnd{*exit_code, 0});
      return job.error();
    }
    pid_ = (*job)->pid();
    JobActivity activity;
    RunEnd end;
    {
      OutputLog log(places_.folder);
      std::optional<JobWatch> watch;
      if (options_.watch) watch.emplace(WatchOptions(), activity);
      end = (*job)->Serve(log, activity);
      ended_ = true;
      if (watch) {
        watch->Stop();
        manifest_.hangs = watch->hangs();
        DropOldLook(watch->look_kept_ns());
      }
      log.Finish();
      manifest_.dropped_bytes = log.dropped_bytes();
      if (log.failed()) Tell("the output could not be stored completely in " + places_.folder + ": is the disk full?");
    }
    manifest_.output_bytes = activity.output_bytes;
    if (killer_.joinable()) killer_.join();
    packets.Stop();
    Finish(end);
    return end;
  }

 private:
  void Tell(const std::string& text) const {
    if (!options_.quiet && !text.empty()) std::fprintf(stderr, "tacet: %s\n", text.c_str());
  }

  void BeginManifest(const Environment& inherited) {
    manifest_.command = options_.command;
    manifest_.level = Name(options_.level);
    manifest_.name = options_.folder.name.empty() ? NameOfCommand(options_.command) : options_.folder.name;
    std::error_code error;
    manifest_.folder = std::filesystem::current_path(error).string();
    manifest_.host = options_.folder.host;
    manifest_.user = UserName();
    manifest_.settings = settings_;
    manifest_.began_wall_ns = WallNs();
    manifest_.versions = ReadVersions();
    manifest_.versions.insert(manifest_.versions.begin(), {"tacet", options_.version});
    for (const auto& variable : inherited) {
      const bool ours = std::any_of(settings_.begin(), settings_.end(),
                                    [&](const RunSetting& setting) { return setting.name == variable.first; });
      if (!ours && IsRelevantVariable(variable.first)) manifest_.inherited.push_back(variable);
    }
    std::sort(manifest_.inherited.begin(), manifest_.inherited.end());
  }

  void Announce() const {
    if (options_.quiet) return;
    size_t set = 0;
    for (const RunSetting& setting : settings_) set += !setting.kept;
    const std::string costs = WrapSettings(RedactSecrets(DescribeSettings(settings_, false)).text);
    std::fprintf(stderr, "tacet: run folder %s\ntacet: %zu variables set (level %s); your own settings are kept%s\n%s",
                 places_.folder.c_str(), set, std::string(Name(options_.level)).c_str(),
                 costs.empty() ? "" : ". These have a cost:", costs.c_str());
  }

  // What of the user's environment is wrong is worth knowing before the job runs for hours.
  void WarnOfSettings(const Environment& variables) const {
    if (options_.quiet) return;
    std::vector<GivenEnvironment> given(1);
    given[0].host = options_.folder.host;
    for (const auto& [name, value] : variables) given[0].variables.push_back({name, value});
    for (GivenEnvironment& conf : ReadNcclConfs(given[0])) given.push_back(std::move(conf));
    std::vector<LintFinding> findings = LintEnvironments(given, {}).findings;
    std::erase_if(findings, [](const LintFinding& finding) { return finding.level != LintLevel::warning; });
    if (findings.empty()) return;
    std::fprintf(stderr, "tacet: settings worth checking (see 'tacet lint'):\n%s",
                 RedactSecrets(RenderLintLines(findings)).text.c_str());
  }

  void KeepManifest() const { WriteWholeFile(places_.folder + "/manifest.json", RenderManifest(manifest_)); }

  JobWatchOptions WatchOptions() {
    JobWatchOptions watch;
    watch.patience = options_.patience;
    watch.looker.search.root = pid_;
    watch.looker.search.run_folder = places_.folder;
    if (!places_.python_folder.empty()) watch.looker.stacks_folder = places_.folder + "/stacks";
    if (!places_.plugin.empty()) watch.looker.box_folder = EffectiveValue(settings_, "TACET_BOX_DIR");
    watch.capture.folder = places_.folder;
    watch.capture.pipe_prefix = EffectiveValue(settings_, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
    watch.capture.flight_prefix = EffectiveValue(settings_, "TORCH_FR_DUMP_TEMP_FILE");
    if (watch.capture.flight_prefix.empty())
      watch.capture.flight_prefix = EffectiveValue(settings_, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
    watch.capture.native = options_.native_stacks;
    watch.capture.box_folder = watch.looker.box_folder;
    watch.on_hang = [this](SeenHang& hang) { AnswerHang(hang); };
    return watch;
  }

  // Called from the watch's thread, while the job still stands.
  void AnswerHang(SeenHang& hang) {
    auto report = DiagnoseFolder(places_.folder);
    if (!report) return Tell("the hang could not be diagnosed: " + report.error().message);
    // The watch has seen that nothing moves, whatever the rules make of it.
    if (report->verdict.status == Status::healthy || report->verdict.status == Status::undetermined) {
      report->verdict.status = Status::hang;
      char text[128] = "PyTorch's watchdog gave up waiting; ";
      if (hang.still_s > 0) std::snprintf(text, sizeof text, "No progress for %.0f s while ranks wait; ", hang.still_s);
      report->verdict.headline =
          text + (report->verdict.headline.empty() ? "the cause is not known yet" : report->verdict.headline);
    }
    hang.headline = report->verdict.headline;
    Speak(*report, places_.folder + "/" + hang.folder);
    ActOnHang();
  }

  void Speak(const Report& report, const std::string& folder) {
    manifest_.status = Name(report.verdict.status);
    manifest_.cause = report.verdict.cause;
    manifest_.headline = RedactSecrets(report.verdict.headline).text;
    manifest_.ranks = report.verdict.ranks;
    KeepVerdict(places_.folder, report);
    if (options_.show) std::fputs(RedactSecrets(options_.show(report)).text.c_str(), stderr);
    Tell("evidence in " + folder + ", page in " + places_.folder + "/report.html");
    if (options_.webhook.empty()) return;
    auto posted = PostWebhook(options_.webhook, DescribeForWebhook(report, places_.folder, manifest_.host));
    if (!posted) Tell("the webhook could not be reached: " + posted.error().message);
  }

  void ActOnHang() {
    if (options_.on_hang == "wait") return;
    if (options_.on_hang == "kill") {
      Tell("ending the job (--on-hang kill)");
      killed_ = true;
      ::kill(pid_, SIGTERM);
      ::kill(pid_, SIGCONT);
      if (!killer_.joinable()) killer_ = std::thread([this] { KillWhenItStays(); });
      return;
    }
    ::setenv("TACET_RUN_DIR", places_.folder.c_str(), 1);
    ::setenv("TACET_JOB_PID", std::to_string(pid_).c_str(), 1);
    ::setenv("TACET_CAUSE", manifest_.cause.c_str(), 1);
    ::setenv("TACET_HEADLINE", manifest_.headline.c_str(), 1);
    const CommandOutcome outcome =
        RunCommand({"sh", "-c", options_.on_hang}, {.time_ms = 600'000, .most_bytes = 1 << 20});
    std::fputs(outcome.out.c_str(), stderr);
    if (!outcome.ok()) Tell("the command of --on-hang " + outcome.problem);
  }

  void KillWhenItStays() const {
    for (int64_t waited = 0; waited < kKillAfterMs; waited += 100) {
      if (ended_) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (!ended_) ::kill(pid_, SIGKILL);
  }

  // What the watch saw long before the end does not explain it.
  void DropOldLook(int64_t kept_ns) const {
    std::error_code error;
    if (kept_ns >= 0 && MonotonicNs() - kept_ns > options_.patience.run_most_look_ns + kKillAfterMs * 1'000'000)
      std::filesystem::remove_all(places_.folder + "/last-look", error);
  }

  // A process that the kernel killed leaves no word anywhere else.
  void KeepHostAtTheEnd() const {
    std::error_code error;
    const std::string folder = places_.folder + "/end";
    std::filesystem::create_directories(folder, error);
    for (CapturedText& captured : CaptureHost(false, kAskAtEndMs)) {
      if (captured.name == "dmesg.txt") captured.text = KernelLinesSince(captured.text, manifest_.began_wall_ns);
      if (!captured.text.empty()) WriteWholeFile(folder + "/" + captured.name, captured.text);
    }
  }

  // A job that ended well and never hung needs no verdict, unless its calls were recorded (--full): results that are
  // wrong on all ranks alike end well, too.
  void Finish(const RunEnd& end) {
    manifest_.ended_wall_ns = WallNs();
    manifest_.exit_code = end.exit_code;
    manifest_.signal = end.signal;
    manifest_.stopped_on_request = killed_ || end.asked_by != 0;
    manifest_.stop_signal = end.asked_by;
    manifest_.stop_wall_ns = end.asked_wall_ns;
    TidyRunFolder(places_);
    KeepManifest();
    if (pid_ > 0 && end.exit_code != 0 && !killed_ && end.asked_by == 0) {
      if (manifest_.hangs.empty()) KeepHostAtTheEnd();
      SpeakOfTheEnd(end);
    }
    if (pid_ > 0 && end.exit_code == 0 && manifest_.hangs.empty() && options_.level == RunLevel::full)
      SpeakOfWrongResults();
    KeepManifest();
  }

  void SpeakOfWrongResults() {
    auto report = DiagnoseFolder(places_.folder);
    if (!report) return Tell("the records of the job could not be read: " + report.error().message);
    if (report->verdict.status == Status::corrupt) Speak(*report, places_.folder);
  }

  // What was said during the hang is not said again.
  void SpeakOfTheEnd(const RunEnd& end) {
    auto report = DiagnoseFolder(places_.folder);
    if (!report) return Tell("the exit could not be diagnosed: " + report.error().message);
    ReportVerdict& verdict = report->verdict;
    if (verdict.status == Status::undetermined || verdict.status == Status::healthy) {
      verdict.status = Status::crash;
      verdict.headline = end.signal != 0 ? "The job was ended by signal " + std::to_string(end.signal)
                                         : "The job ended with exit code " + std::to_string(end.exit_code);
      verdict.headline += "; the captured evidence does not show why";
    }
    const bool told = !manifest_.hangs.empty() &&
                      (verdict.cause.empty() || (verdict.cause == manifest_.cause && verdict.ranks == manifest_.ranks));
    if (!told) Speak(*report, places_.folder);
  }

  const JobRunOptions& options_;
  RunPlaces places_;
  std::vector<RunSetting> settings_;
  RunManifest manifest_;
  pid_t pid_ = -1;
  std::atomic<bool> ended_{false}, killed_{false};
  std::thread killer_;
};

}  // namespace

Result<RunEnd> RunJob(const JobRunOptions& options, int* exit_code) {
  *exit_code = 2;
  if (!options.webhook.empty())
    if (auto checked = CheckWebhook(options.webhook); !checked) return checked.error();
  return JobRun(options).Do(exit_code);
}

}  // namespace tacet
