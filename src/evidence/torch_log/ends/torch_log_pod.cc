// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_pod.h"

#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"

namespace tacet {
namespace {

constexpr int64_t kNotTold = 255;  // of a container whose code nobody tells

bool IsPodName(std::string_view word) {
  return word.size() > 2 && word.size() < 254 &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos;
}

// "0/2"
bool IsReadyCount(std::string_view word) {
  int64_t ready = -1, all = -1;
  return TakeNumber(word, &ready) && TakeLiteral(word, "/") && TakeNumber(word, &all) && word.empty() && ready >= 0 &&
         all > 0;
}

LineUse AddPodEnd(const LogLine& line, std::string_view pod, int64_t code, std::string_view how, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "pod " + std::string(pod));
  // Another line of the same end may tell the code.
  if (!is_new && (record->value != kNotTold || code == kNotTold)) return LineUse::understood;
  record->source = line.source;
  record->value = code;
  record->subject = how;
  record->host = Capped(pod, 200);
  record->of_pod = true;
  record->text = Capped(Trim(line.text), 600);
  return LineUse::understood;
}

}  // namespace

LineUse PodDescriptionReader::Read(const LogLine& line, RecordList& out) {
  std::string_view text = Trim(line.text);
  const bool at_margin = !line.text.starts_with(' ');
  if (TakeLiteral(text, "Name:") && at_margin && IsPodName(Trim(text))) {
    *this = PodDescriptionReader();
    pod_ = Trim(text);
    return LineUse::understood;
  }
  if (pod_.empty()) return LineUse::not_understood;
  if (at_margin && TakeLiteral(text, "Node:")) {
    node_ = Capped(Trim(text).substr(0, Trim(text).find('/')), 200);
    return LineUse::understood;
  }
  if (text == "Limits:" || text == "Requests:") {
    in_limits_ = text == "Limits:";
    return LineUse::understood;
  }
  if (in_limits_ && TakeLiteral(text, "memory:")) {
    if (killed_ != nullptr) killed_->cure = Capped(Trim(text), 40);
    return LineUse::understood;
  }
  if (killed_ != nullptr && text.starts_with("Exit Code:")) return LineUse::understood;  // 137: the same end
  if (TakeLiteral(text, "Reason:") && Trim(text) == "OOMKilled") {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::oom_kill, line, pod_);
    killed_ = record;
    if (!is_new) return LineUse::understood;
    record->value = 1;
    record->object = pod_;
    record->host = node_;
    record->text = Capped(Trim(line.text), 600);
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

// Kubeflow's operator: time="..." level=info msg="Pod: team-a.resnet-worker-0 exited with code 1" job=team-a.resnet
// kubectl get pods: resnet-9f2k-master-0  0/2     CrashLoopBackOff   8          2m41s
LineUse ReadPodEnd(const LogLine& line, RecordList& out) {
  // 2024-04-05T11:12:25-04:00	DEBUG	events	Pod: default.resnet-worker-0 exited with code 1	{"type": "Normal", ...
  auto pod = After(line.text, "msg=\"Pod: ");
  if (!pod) pod = After(line.text, "\tPod: ");
  if (!pod && Contains(line.text, " job="))
    pod = After(line.text, "] Pod: ");  // INFO[0289] Pod: ... job=default.resnet
  if (pod) {
    std::string_view name = TakeWord(*pod);
    const auto code = IntAfter(*pod, "exited with code ");
    if (!code || !Trim(*pod).starts_with("exited with code ") || *code <= 0 || *code > 255 || !IsPodName(name))
      return LineUse::not_understood;
    if (const size_t dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
    return *code > 128 && *code < 160 ? AddPodEnd(line, name, 128 - *code, SignalName(*code - 128), out)
                                      : AddPodEnd(line, name, *code, "", out);
  }
  // Back-off restarting failed container trainer in pod resnet-worker-0_team-a(8d68...)
  // back-off 40s restarting failed container=trainer pod=resnet-worker-0_team-a(8d68...)
  if (const auto container = After(line.text, "restarting failed container")) {
    auto pod = After(*container, " in pod ");
    if (!pod) pod = After(*container, " pod=");
    const std::string_view name = pod ? pod->substr(0, pod->find_first_of("_ (\"")) : std::string_view();
    return IsPodName(name) ? AddPodEnd(line, name, kNotTold, "CrashLoopBackOff", out) : LineUse::not_understood;
  }
  std::string_view rest = Trim(line.text);
  const std::string_view name = TakeWord(rest), ready = TakeWord(rest), status = TakeWord(rest);
  if (!IsPodName(name) || !IsReadyCount(ready)) return LineUse::not_understood;
  for (const std::string_view failed : {"CrashLoopBackOff", "Error", "RunContainerError", "Init:CrashLoopBackOff",
                                        "Init:Error", "StartError", "ContainerCannotRun"})
    if (status == failed) return AddPodEnd(line, name, kNotTold, status, out);
  return LineUse::not_understood;
}

}  // namespace tacet
