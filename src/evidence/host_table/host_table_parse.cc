// SPDX-License-Identifier: Apache-2.0
#include "evidence/host_table/host_table_parse.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/host_table/host_table_dcgm.h"
#include "evidence/host_table/host_table_metrics.h"
#include "evidence/host_table/host_table_processes.h"
#include "evidence/host_table/host_table_smi_csv.h"

namespace tacet {
namespace {

constexpr size_t kMostRows = 4096, kLongestLine = 900;

// ---- nvidia-smi, gpustat ----

// "| N/A   57C    P0    41W /  70W |   2566MiB / 15109MiB |    100%      Default |" -> three cells
bool TakeCells(std::string_view line, std::array<std::string_view, 3>& cells) {
  line = Trim(line);
  if (!TakeLiteral(line, "|")) return false;
  for (std::string_view& cell : cells) {
    const size_t bar = line.find('|');
    if (bar == std::string_view::npos) return false;
    cell = Trim(line.substr(0, bar));
    line.remove_prefix(bar + 1);
  }
  return line.empty();
}

// The number in front of a mark: "P0    41W /  70W" and "W /" -> 41
std::optional<double> NumberBefore(std::string_view text, std::string_view mark) {
  const size_t end = text.find(mark);
  if (end == std::string_view::npos) return std::nullopt;
  size_t begin = end;
  while (begin > 0 && (IsDigit(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  std::string_view number = text.substr(begin, end - begin);
  double value = 0;
  if (number.empty() || !TakeDouble(number, &value) || value < 0 || value > 1e9) return std::nullopt;
  return value;
}

// "|   0  Tesla T4            Off  | 00000000:21:01.0 Off |                    0 |" -> 0
std::optional<int32_t> GpuOfHead(const std::array<std::string_view, 3>& cells) {
  std::string_view rest = cells[0];
  int32_t index = -1;
  if (!TakeNumber(rest, &index) || index < 0 || index > 1024 || !rest.starts_with(' ')) return std::nullopt;
  const size_t colon = cells[1].find(':');
  if (colon == std::string_view::npos || colon < 4 || Contains(cells[1], "MiB")) return std::nullopt;
  return index;
}

bool TakeLoad(const std::array<std::string_view, 3>& cells, GpuLoad& load) {
  const auto memory = NumberBefore(cells[1], "MiB /");
  const auto percent = NumberBefore(cells[2], "%");
  if (!memory || !percent || *percent > 100 || *memory > 1e8) return false;
  load.memory_mib = static_cast<int32_t>(*memory);
  load.percent = static_cast<float>(*percent);
  load.watts = static_cast<float>(NumberBefore(cells[0], "W /").value_or(-1));
  const size_t slash = cells[0].find("W /");
  if (slash != std::string_view::npos)
    load.most_watts = static_cast<float>(NumberBefore(cells[0].substr(slash + 2), "W").value_or(-1));
  return true;
}

// | ERR!  ERR! ERR!            ERR! / 700W |      0MiB / 81559MiB |   ERR!      Default |
// A fan or a power sensor that cannot be read says little; where more is lost, the driver does not reach the GPU.
bool IsBroken(const std::array<std::string_view, 3>& cells) {
  constexpr std::string_view kError = "ERR!";
  size_t errors = 0;
  for (size_t at = cells[0].find(kError); at != std::string_view::npos; at = cells[0].find(kError, at + kError.size()))
    ++errors;
  return errors > 2 || (errors > 0 && (Contains(cells[1], kError) || Contains(cells[2], kError))) ||
         Contains(cells[1], "GPU requires reset");
}

// "00000000:5D:00.0 Off" -> "0000:5d:00", as the kernel names the device
std::string AddressOf(std::string_view cell) {
  cell = cell.substr(0, cell.find(' '));
  if (cell.size() > 8 && cell[8] == ':') cell.remove_prefix(4);
  std::string address(cell.substr(0, cell.find('.')));
  for (char& c : address) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return address;
}

// [0] NVIDIA A100-SXM4-80GB | 41'C, 100 %,  88 / 400 W | 31000 / 81920 MB | anna(30990M)
bool TakeGpustat(std::string_view line, GpuLoad& load) {
  line = Trim(line);
  if (!TakeLiteral(line, "[") || !TakeNumber(line, &load.index) || !TakeLiteral(line, "] ")) return false;
  const size_t bar = line.find('|');
  if (load.index < 0 || load.index > 1024 || bar == std::string_view::npos) return false;
  const std::string_view state = line.substr(bar + 1, line.find('|', bar + 1) - bar - 1);
  const auto percent = NumberBefore(state, " %");
  if (!percent || *percent > 100 || !Contains(state, "C,")) return false;
  load.percent = static_cast<float>(*percent);
  if (const auto slash = NumberBefore(state, " / ")) load.watts = static_cast<float>(*slash);
  if (const auto most = NumberBefore(state, " W")) load.most_watts = static_cast<float>(*most);
  if (const size_t memory = line.find('|', bar + 1); memory != std::string_view::npos)
    load.memory_mib = static_cast<int32_t>(std::min(NumberBefore(line.substr(memory), " / ").value_or(-1), 1e8));
  return true;
}

// ---- df ----

// "24G", "641M", "1.9G", "0", "123456", "512Ki"
bool IsSize(std::string_view word) {
  double value = 0;
  if (word.empty() || !IsDigit(word[0]) || !TakeDouble(word, &value)) return false;
  if (!word.empty() && std::string_view("KMGTPEBk").find(word[0]) != std::string_view::npos) word.remove_prefix(1);
  TakeLiteral(word, "i");
  TakeLiteral(word, "B");
  return word.empty();
}

// A squashfs, a medium or a loop device is full from its first day on.
bool IsAlwaysFull(std::string_view system, std::string_view mount) {
  return system.starts_with("/dev/loop") || system.starts_with("/dev/sr") || mount.starts_with("/snap/") ||
         mount.starts_with("/media/") || mount.starts_with("/mnt/cdrom") || system == "efivarfs" ||
         system == "squashfs";
}

bool IsFileSystem(std::string_view word) {
  return word.starts_with('/') || Contains(word, ":/") || word == "tmpfs" || word == "shm" || word == "overlay" ||
         word == "none" || word == "devtmpfs" || word == "rootfs" || word == "efivarfs" || Contains(word, "@");
}

// tmpfs                 24G   40M   24G   1% /dev/shm        (df -T has the type behind the name)
bool TakeSpace(std::string_view line, SpaceUse& use, bool& of_interest) {
  std::string_view words[8];
  const size_t count = SplitWords(line, words);
  if (count < 6 || count > 7 || !IsFileSystem(words[0])) return false;
  const size_t at = count == 7 ? 2 : 1;
  std::string_view percent = words[at + 3];
  if (!IsSize(words[at]) || !IsSize(words[at + 1]) || !IsSize(words[at + 2]) || !words[at + 4].starts_with('/'))
    return false;
  if (!TakeNumber(percent, &use.percent) || percent != "%" || use.percent < 0 || use.percent > 100) return false;
  use.size = words[at];
  use.used = words[at + 1];
  use.mount = words[at + 4];
  of_interest = !IsAlwaysFull(words[0], use.mount) && words[at] != "0";
  return true;
}

// ---- Slurm ----

bool IsNodeList(std::string_view word) {
  return !word.empty() && word.size() < 200 &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-[],") ==
             std::string_view::npos &&
         word.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string_view::npos;
}

// "drng@", "fail*", "mix", "idle~": the state, and a mark behind it ('*': the node does not answer).
std::optional<NodeCondition> ConditionOf(std::string_view word) {
  const char mark = word.empty() ? ' ' : word.back();
  const bool marked = std::string_view("*~#!%$@^-").find(mark) != std::string_view::npos;
  if (marked) word.remove_suffix(1);
  using enum NodeCondition;
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  std::optional<NodeCondition> condition;
  if (is({"idle", "mix", "mixed", "alloc", "allocated", "comp", "completing", "plnd", "planned", "resv", "reserved",
          "npc"}))
    condition = takes_jobs;
  if (is({"drng", "draining", "drain", "drained"})) condition = draining;
  if (is({"maint", "futr", "future", "pow_dn", "pow_up", "boot", "reboot", "block", "blocked"})) condition = maintained;
  if (is({"down", "fail", "failg", "failing", "error", "err", "unk", "unknown", "inval"})) condition = failed;
  if (!condition) return std::nullopt;
  if (mark == '*') return silent;
  if (condition == takes_jobs && (mark == '$' || mark == '@' || mark == '^')) return maintained;
  return condition;
}

// PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
// gpu          up 14-00:00:0      3  fail* g[027-029]
bool TakePartition(std::string_view line, ListedNodes& state) {
  std::string_view words[7];
  if (SplitWords(line, words) != 6) return false;
  if (words[1] != "up" && words[1] != "down" && words[1] != "drain" && words[1] != "inact") return false;
  std::string_view number = words[3];
  if (!TakeNumber(number, &state.count) || !number.empty() || state.count < 0 || !IsNodeList(words[5])) return false;
  if (words[2].find_first_not_of("0123456789-:infte") != std::string_view::npos) return false;
  const auto condition = ConditionOf(words[4]);
  if (!condition) return false;
  state.condition = *condition;
  state.word = words[4];
  state.nodes = words[5];
  state.partition = words[0];
  if (state.partition.ends_with('*')) state.partition.pop_back();
  // Nobody gets nodes of a partition that is closed.
  if (words[1] != "up" && state.condition == NodeCondition::takes_jobs) state.condition = NodeCondition::maintained;
  return true;
}

// NODELIST    NODES PARTITION   STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
// node7           1    debug* drained   36   1:36:1  70235        0      1   (null) Low RealMemory
// sinfo -N -l: one row for each node and partition, and why it takes no jobs.
bool TakeNodeRow(std::string_view line, ListedNodes& state) {
  std::string_view words[16];
  const size_t count = SplitWords(line, words);
  if (count < 10 || !IsNodeList(words[0])) return false;
  std::string_view number = words[1], cpus = words[4];
  int64_t cores = -1;
  if (!TakeNumber(number, &state.count) || !number.empty() || state.count < 0) return false;
  if (!TakeNumber(cpus, &cores) || !cpus.empty() || words[5].find(':') == std::string_view::npos) return false;
  const auto condition = ConditionOf(words[3]);
  if (!condition) return false;
  state.condition = *condition;
  state.word = words[3];
  if (count > 10 && words[10] != "none") {
    line = Trim(line);
    const auto reason = static_cast<size_t>(words[10].data() - line.data());
    if (reason < line.size()) state.word = std::string(words[3]) + ": " + std::string(line.substr(reason));
  }
  state.nodes = words[0];
  state.partition = words[2];
  if (state.partition.ends_with('*')) state.partition.pop_back();
  return true;
}

// REASON               USER        TIMESTAMP           NODELIST
// Prolog error         root        2025-03-12T11:02:12 node07
bool TakeReason(std::string_view line, ListedNodes& state) {
  line = Trim(line);
  const size_t last = line.rfind(' ');
  if (last == std::string_view::npos) return false;
  const std::string_view nodes = line.substr(last + 1);
  std::string_view rest = Trim(line.substr(0, last));
  const size_t time = rest.rfind(' ');
  if (time == std::string_view::npos || rest.size() - time - 1 != 19 || rest[time + 11] != 'T' || rest[time + 5] != '-')
    return false;
  rest = Trim(rest.substr(0, time));
  const size_t user = rest.rfind(' ');
  if (user == std::string_view::npos || !IsNodeList(nodes)) return false;
  state.nodes = nodes;
  state.word = Trim(rest.substr(0, user));
  state.condition = Contains(state.word, "rolog")           ? NodeCondition::prolog_failed
                    : Contains(state.word, "ot responding") ? NodeCondition::silent
                                                            : NodeCondition::draining;
  return !state.word.empty();
}

// salloc: Prolog failure on node m003-006
// srun: error: Task launch for StepId=188454.0 failed on node gpu07: Job prolog failed
bool TakeProlog(std::string_view line, ListedNodes& state) {
  if (!ContainsAny(line, {"rolog failure on node ", "rolog failed on node ", ": Job prolog failed"})) return false;
  if (!ContainsAny(line, {"salloc:", "srun:", "sbatch:", "slurmd", "slurmctld"})) return false;
  auto node = After(line, " on node ");
  if (!node) return false;
  std::string_view name = TakeWord(*node);
  while (!name.empty() && (name.back() == ':' || name.back() == '.' || name.back() == ',')) name.remove_suffix(1);
  if (!IsNodeList(name)) return false;
  state.nodes = name;
  state.condition = NodeCondition::prolog_failed;
  return true;
}

// dev@gpu07:~$ df -h
std::string_view PromptHost(std::string_view line) {
  const size_t at = line.substr(0, 60).find('@');
  if (at == std::string_view::npos || at == 0) return {};
  const size_t mark = line.find_first_of("$#%", at), end = line.find_first_of(": ]~$#", at);
  if (end == std::string_view::npos || end == at + 1 || mark == std::string_view::npos) return {};
  return ContainsAny(line, {"nvidia-smi", "gpustat", "df ", "sinfo"}) ? line.substr(at + 1, end - at - 1)
                                                                      : std::string_view();
}

// "HW Thermal Slowdown           : Not Active" of nvidia-smi -q, as its query names it:
// clocks_event_reasons.hw_thermal_slowdown
std::string ReasonOfClock(std::string_view text) {
  constexpr std::array<std::string_view, 9> kNames{
      "Idle",       "Applications Clocks Setting", "SW Power Cap",        "HW Slowdown",          "HW Thermal Slowdown",
      "Sync Boost", "HW Power Brake Slowdown",     "SW Thermal Slowdown", "Display Clock Setting"};
  const size_t colon = text.find(" : ");
  if (colon == std::string_view::npos) return "";
  const std::string_view key = Trim(text.substr(0, colon)), value = Trim(text.substr(colon + 3));
  if ((value != "Active" && value != "Not Active") || std::find(kNames.begin(), kNames.end(), key) == kNames.end())
    return "";
  std::string name = "clocks_event_reasons.";
  for (const char c : key) name += c == ' ' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

class HostReader {
 public:
  explicit HostReader(std::string_view bytes) : bytes_(bytes) {}

  HostTable Read() {
    LineReader reader(bytes_);
    std::string_view line;
    while (reader.Next(&line)) {
      place_ = {reader.number(), reader.offset(), ""};
      const bool known = line.size() <= kLongestLine && Take(line);
      (known ? out_.understood : Trim(line).empty() ? out_.ignored : out_.not_understood) += reader.line_bytes();
    }
    return std::move(out_);
  }

 private:
  bool Take(std::string_view line) {
    const std::string_view text = Trim(line);
    if (text.empty()) return false;
    place_.text = text.substr(0, 200);
    if (const std::string_view host = PromptHost(text); !host.empty()) {
      host_ = host;
      return true;
    }
    if (TakeMetric(text) || TakeFabric(text) || TakeReasonOfClock(text) || TakeCheck(text) || TakeGpu(text) ||
        TakeDisk(text) || TakeProcess(text))
      return true;
    if (ListedNodes state; TakePartition(text, state) || TakeNodeRow(text, state) || TakeProlog(text, state) ||
                           (reasons_ && TakeReason(text, state)))
      return AddNode(std::move(state));
    if (text.starts_with("REASON ") && Contains(text, " NODELIST")) return reasons_ = true;
    if (text.starts_with("PARTITION ") && Contains(text, "NODELIST")) return true;
    if (text.starts_with("NODELIST ") && Contains(text, " STATE ")) return true;
    inodes_ = text.starts_with("Filesystem") ? Contains(text, "IUse%") : inodes_;
    return text.starts_with("Filesystem") && Contains(text, "Mounted on");
  }

  // Only the last Xid is kept by the exporter; zero where there was none.
  bool TakeMetric(std::string_view text) {
    if (text.starts_with("# HELP DCGM_FI_") || text.starts_with("# TYPE DCGM_FI_")) return true;
    const auto sample = ParseDcgmSample(text);
    if (!sample) return false;
    const bool xid = sample->name == "DCGM_FI_DEV_XID_ERRORS" && sample->value > 0 && sample->value < 1000;
    if (xid && out_.xids.size() < kMostRows)
      out_.xids.push_back({place_, static_cast<int64_t>(sample->value), sample->pci});
    return true;
  }

  //     Fabric
  //         State                             : Completed
  //         Status                            : Insufficient Resources
  // Of the lines below the heading the status alone tells whether the GPU can use it; "In Progress" may still change.
  bool TakeFabric(std::string_view text) {
    if (text == "Fabric") return fabric_ = true;
    if (!fabric_) return false;
    const size_t colon = text.find(" : ");
    const std::string_view key = Trim(text.substr(0, colon));
    if (colon == std::string_view::npos || (key != "State" && key != "Status")) return fabric_ = false;
    const std::string_view value = Trim(text.substr(colon + 3));
    if (key == "State") return fabric_ = value == "Completed", true;
    fabric_ = false;
    if (value != "Success" && value != "N/A" && !value.empty() && value.size() < 80 && out_.fabrics.size() < kMostRows)
      out_.fabrics.push_back({place_, std::string(value)});
    return true;
  }

  // GPU 00000000:18:00.0
  //     Clocks Event Reasons
  //         SW Power Cap                      : Active
  //         HW Slowdown                       : Not Active
  // One block for each GPU, in the order of their numbers; a fragment is of one.
  bool TakeReasonOfClock(std::string_view text) {
    if (text == "Clocks Event Reasons" || text == "Clocks Throttle Reasons") {
      gpu_of_reasons_ = static_cast<int32_t>(out_.gpus.size());
      if (out_.gpus.size() < kMostRows) {
        GpuRow& row = out_.gpus.emplace_back();
        static_cast<RowPlace&>(row) = place_;
        row.load.host = host_;
        row.load.index = gpu_of_reasons_;
        row.text.clear();
      }
      return true;
    }
    const std::string name = ReasonOfClock(text);
    if (name.empty()) return false;
    if (gpu_of_reasons_ < 0) TakeReasonOfClock("Clocks Event Reasons");
    if (static_cast<size_t>(gpu_of_reasons_) >= out_.gpus.size()) return true;
    std::string& words = out_.gpus[static_cast<size_t>(gpu_of_reasons_)].text;
    constexpr size_t kLongestText = 600;
    const std::string_view value = Trim(text.substr(text.find(" : ") + 3));
    if (words.size() < kLongestText) words += (words.empty() ? "" : ", ") + name + "=" + std::string(value);
    return true;
  }

  bool TakeCheck(std::string_view text) {
    GpuCheck check;
    bool about = false;
    if (dcgm_.TakeHead(text)) return true;
    if (!dcgm_.TakeRow(text, check, about)) return false;
    // A row below a test names the GPUs that its own row does not.
    if (about && !out_.checks.empty())
      for (auto row = out_.checks.rbegin(); row != out_.checks.rend(); ++row)
        if (!row->check.remark && row->check.test == check.test) {
          if (row->check.gpus.empty()) row->check.gpus = check.gpus;
          row->check.failed = true;
          check.of_setup = row->check.of_setup;
          break;
        }
    if (!check.test.empty() && out_.checks.size() < kMostRows) out_.checks.push_back({place_, std::move(check)});
    return true;
  }

  bool TakeGpu(std::string_view text) {
    GpuLoad load;
    if (csv_.TakeHead(text)) return true;
    if (csv_.TakeRow(text, load, place_.text)) {  // nothing more to read
    } else if (std::array<std::string_view, 3> cells; text.starts_with('|') && TakeCells(text, cells)) {
      if (const auto index = GpuOfHead(cells)) {
        gpu_ = *index;
        pci_ = AddressOf(cells[1]);
        return true;
      }
      if (gpu_ >= 0 && IsBroken(cells)) {
        if (out_.broken.size() < kMostRows) out_.broken.push_back({place_, gpu_, pci_});
        gpu_ = -1;
        return true;
      }
      if (gpu_ < 0 || !TakeLoad(cells, load)) return Contains(text, "GPU-Util") || Contains(text, "Volatile Uncorr");
      load.index = gpu_;
      gpu_ = -1;
    } else if (!TakeGpustat(text, load)) {
      return text.starts_with("| NVIDIA-SMI");
    }
    load.host = host_;
    // The last table counts.
    for (GpuRow& row : out_.gpus)
      if (row.load.host == load.host && row.load.index == load.index) {
        row = {place_, std::move(load)};
        return true;
      }
    if (out_.gpus.size() < kMostRows) out_.gpus.push_back({place_, std::move(load)});
    return true;
  }

  bool TakeProcess(std::string_view text) {
    if (list_.TakeHead(text)) return true;
    ProcessRow row;
    if (!list_.TakeRow(text, row)) return false;
    static_cast<RowPlace&>(row) = place_;
    // Of several lists the last one counts.
    const auto same = std::find_if(out_.processes.begin(), out_.processes.end(),
                                   [&](const ProcessRow& one) { return one.pid == row.pid; });
    if (same != out_.processes.end())
      *same = std::move(row);
    else if (out_.processes.size() < kMostRows)
      out_.processes.push_back(std::move(row));
    return true;
  }

  bool TakeDisk(std::string_view text) {
    SpaceUse use;
    bool of_interest = false;
    if (!TakeSpace(text, use, of_interest)) return false;
    if (!of_interest) return true;
    use.host = host_;
    use.inodes = inodes_;
    use.first_percent = use.percent;
    use.rows = 1;
    for (SpaceRow& row : out_.spaces)
      if (row.use.host == use.host && row.use.mount == use.mount && row.use.inodes == use.inodes) {
        use.first_percent = row.use.first_percent;
        use.rows = row.use.rows + 1;
        row = {place_, std::move(use)};
        return true;
      }
    if (out_.spaces.size() < kMostRows) out_.spaces.push_back({place_, std::move(use)});
    return true;
  }

  bool AddNode(ListedNodes state) {
    const bool known = std::any_of(out_.nodes.begin(), out_.nodes.end(), [&](const NodeRow& row) {
      return row.state.nodes == state.nodes && row.state.condition == state.condition &&
             row.state.partition == state.partition;
    });
    if (!known && out_.nodes.size() < kMostRows) out_.nodes.push_back({place_, std::move(state)});
    return true;
  }

  std::string_view bytes_;
  HostTable out_;
  RowPlace place_;
  std::string host_;
  SmiCsv csv_;
  DcgmTable dcgm_;
  ProcessTable list_;
  std::string pci_;   // of the GPU in the row before
  int32_t gpu_ = -1;  // whose load the next row of the table shows
  bool inodes_ = false, reasons_ = false;
  bool fabric_ = false;  // below the heading of nvidia-smi -q
  int32_t gpu_of_reasons_ = -1;  // whose clock's reasons are listed
};

}  // namespace

bool IsHostLine(std::string_view line) {
  const std::string_view text = Trim(line);
  if (text.empty() || text.size() > kLongestLine) return false;
  SpaceUse use;
  GpuLoad load;
  ListedNodes state;
  bool of_interest = false;
  if (text.starts_with("| NVIDIA-SMI ") || TakeSpace(text, use, of_interest) || TakeGpustat(text, load)) return true;
  if (SmiCsv::IsHead(text) || DcgmTable::IsHead(text) || ProcessTable::IsHead(text)) return true;
  if (ParseDcgmSample(text)) return true;
  if (!ReasonOfClock(text).empty()) return true;
  if (text.starts_with("CliqueId ") && Contains(text, " : ")) return true;  // of nvidia-smi -q
  std::array<std::string_view, 3> cells;
  if (text.starts_with('|') && TakeCells(text, cells) && GpuOfHead(cells)) return true;
  return TakePartition(text, state) || TakeNodeRow(text, state) || TakeProlog(text, state) ||
         (text.starts_with("REASON ") && Contains(text, " TIMESTAMP") && Contains(text, " NODELIST"));
}

HostTable ParseHostTable(std::string_view bytes) { return HostReader(bytes).Read(); }

}  // namespace tacet
