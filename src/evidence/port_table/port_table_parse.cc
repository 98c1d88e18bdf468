// SPDX-License-Identifier: Apache-2.0
#include "evidence/port_table/port_table_parse.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/digit_groups.h"
#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostPorts = 1024, kLongestLine = 400;

// "mlx5_0", "bnxt_re1", "efa_0", "ens1f0np0": one word of letters, digits and few signs.
bool IsDeviceName(std::string_view word) {
  return word.size() > 1 && word.size() < 32 && word[0] >= 'a' && word[0] <= 'z' &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
             std::string_view::npos;
}

// "PORT_ACTIVE (4)", "4: ACTIVE", "Active", "DOWN"
std::optional<PortHealth> HealthOf(std::string_view word) {
  word = Trim(word);
  if (word.size() > 3 && IsDigit(word[0]) && word[1] == ':') word = Trim(word.substr(2));
  TakeLiteral(word, "PORT_");
  word = word.substr(0, word.find_first_of(" \t("));
  if (word == "ACTIVE" || word == "Active" || word == "Up" || word == "UP") return PortHealth::active;
  if (word == "DOWN" || word == "Down" || word == "ACTIVE_DEFER") return PortHealth::down;
  if (word == "INIT" || word == "Initializing" || word == "ARMED" || word == "Armed" || word == "ARM" ||
      word == "INITIALIZING" || word == "Initialize")
    return PortHealth::initializing;
  return std::nullopt;
}

void TakePhysical(std::string_view word, PortState& port) {
  word = Trim(word);
  if (word.size() > 3 && IsDigit(word[0]) && word[1] == ':') word = Trim(word.substr(2));
  port.polling = word.starts_with("Polling") || word.starts_with("POLLING");
  // An Ethernet port without a link calls itself disabled: only InfiniBand's looks for a partner.
  if (port.polling) port.infiniband = true;
  if ((word.starts_with("Disabled") || word.starts_with("DISABLED")) && port.health == PortHealth::down)
    port.health = PortHealth::disabled;
}

// docker0, veth12ab, virbr0, lo, cni0, tunnels: nothing is plugged into them.
bool IsVirtual(std::string_view name) {
  for (const std::string_view begin :
       {"docker", "veth", "virbr", "lo",  "br-", "cni", "flannel", "cali", "tun",    "tap",
        "dummy",  "ifb",  "sit",   "ip6", "gre", "wg",  "vxlan",   "lxc",  "cilium", "nerdctl"})
    if (name.starts_with(begin)) return true;
  return name.empty() || name == "bonding_masters";
}

// ib0, ibs1f0, ibp26s0: an interface of IP over InfiniBand.
bool IsIpOverInfiniband(std::string_view interface) { return interface.starts_with("ib"); }

struct NetdevRow {
  std::string_view device, interface;
  int64_t port = -1;
  PortHealth health = PortHealth::active;
};

// mlx5_0 port 1 ==> ib0 (Down)
// mlx5_10  port  1  ==>  ibp204s0       (Down)  # behind the row stands what somebody remarks
std::optional<NetdevRow> ReadNetdevRow(std::string_view text) {
  NetdevRow row;
  row.device = TakeWord(text);
  if (!IsDeviceName(row.device) || TakeWord(text) != "port") return std::nullopt;
  SkipBlanks(text);
  if (!TakeNumber(text, &row.port) || TakeWord(text) != "==>") return std::nullopt;
  row.interface = TakeWord(text);
  std::string_view state = Trim(text);
  const size_t close = state.find(')');
  if (!state.starts_with('(') || close == std::string_view::npos) return std::nullopt;
  const std::string_view behind = Trim(state.substr(close + 1));
  if (!behind.empty() && behind[0] != '#') return std::nullopt;
  const auto health = HealthOf(state.substr(1, close - 1));
  if (!health) return std::nullopt;
  row.health = *health;
  return row;
}

// "4X      25.78125 Gbps" with one blank between its words.
std::string OneBlank(std::string_view text) {
  std::string out;
  for (std::string_view word = TakeWord(text); !word.empty(); word = TakeWord(text))
    out += (out.empty() ? "" : " ") + std::string(word);
  return out;
}

// The limits of ibqueryerrors (infiniband-diags, error_thresholds), which operators know; the widths are perfquery's,
// whose counters stay at their highest value.
struct ErrorCounter {
  std::string_view name;
  int64_t limit, highest;
  std::string_view words;
};
constexpr ErrorCounter kErrorCounters[] = {
    {"SymbolErrorCounter", 10, 65535, "symbol errors"},
    {"LinkErrorRecoveryCounter", 10, 255, "link recoveries"},
    {"LinkDownedCounter", 10, 255, "link downs"},
    {"PortRcvErrors", 10, 65535, "receive errors"},
    {"LocalLinkIntegrityErrors", 10, 15, "link integrity errors"},
    {"ExcessiveBufferOverrunErrors", 10, 15, "buffer overruns"},
    {"PortXmitDiscards", 100, 65535, "discarded packets"},
    {"PortRcvRemotePhysicalErrors", 100, 65535, "packets that were damaged on their way"},
};

// dev@gpu07:~$ ibstat; [root@gpu07 ~]# rdma link
std::string_view HostOfPrompt(std::string_view line) {
  const size_t at = line.substr(0, 60).find('@');
  if (at == std::string_view::npos || at == 0) return {};
  std::string_view rest = line.substr(at + 1);
  const size_t end = rest.find_first_of(": ]~$#");
  const size_t mark = line.find_first_of("$#%", at);
  if (end == std::string_view::npos || end == 0 || mark == std::string_view::npos) return {};
  return rest.substr(0, end);
}

// "U U D X _ _": dcgmi nvlink --link-status, a letter for each link.
bool IsLinkLetters(std::string_view text) {
  if (text.size() < 5) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (i % 2 == 1 ? text[i] != ' ' : std::string_view("UDX_").find(text[i]) == std::string_view::npos) return false;
  return true;
}

constexpr std::string_view kAllInactive = "Unable to retrieve NVLink information as all links are inActive";

class PortReader {
 public:
  explicit PortReader(std::string_view bytes) : bytes_(bytes) {}

  PortTable Read() {
    LineReader reader(bytes_);
    std::string_view line;
    while (reader.Next(&line)) {
      number_ = reader.number();
      offset_ = reader.offset();
      const bool known = line.size() <= kLongestLine && Take(line);
      (known ? out_.understood : Trim(line).empty() ? out_.ignored : out_.not_understood) += reader.line_bytes();
    }
    return std::move(out_);
  }

 private:
  bool Take(std::string_view line) {
    text_ = line;
    if (const std::string_view host = HostOfPrompt(line);
        !host.empty() && ContainsAny(line, {"ibstat", "ibv_devinfo", "ibdev2netdev", "rdma link", "ip -br", "ip link",
                                            "ip a", "iblinkinfo", "perfquery", "nvlink"})) {
      host_ = host;
      device_.clear();
      return true;
    }
    return TakeCounter(Trim(line)) || TakeNvlink(Trim(line)) || TakeLink(Trim(line)) || TakeRow(Trim(line)) ||
           TakeBlock(line, Trim(line));
  }

  // # Port info: Lid 1 port 28                       ibportstate, smpquery portinfo
  // LinkState:.......................Down
  // PhysLinkState:...................Disabled
  bool TakePortInfo(std::string_view text) {
    if (text.starts_with("# Port info: Lid ")) {
      const auto lid = IntAfter(text, "Lid "), port = IntAfter(text, " port ");
      asked_port_ = lid && port ? *port : -1;
      if (asked_port_ >= 0) asked_device_ = "LID " + std::to_string(*lid);
      counting_ = false;
      return asked_port_ >= 0;
    }
    const size_t dots = text.find(":...");
    if (asked_port_ < 0 || dots == std::string_view::npos) return false;
    std::string_view value = text.substr(dots + 1);
    value = value.substr(std::min(value.find_first_not_of('.'), value.size()));
    const std::string_view key = text.substr(0, dots);
    if (key == "LinkState") {
      const auto health = HealthOf(value);
      if (!health) return true;
      PortRow& row = RowOf(host_, asked_device_, asked_port_, "");
      row.port.infiniband = true;
      Set(row, *health, true);
    } else if (key == "PhysLinkState") {
      PortRow& row = RowOf(host_, asked_device_, asked_port_, "");
      if (row.line > 0) TakePhysical(value, row.port);
    }
    return true;
  }

  // # Port counters: Lid 118 port 1 (CapMask: 0x5A00)
  // SymbolErrorCounter:..............65535
  bool TakeCounter(std::string_view text) {
    if (TakePortInfo(text)) return true;
    if (text.starts_with("# Port counters: Lid ") || text.starts_with("# Port extended counters: Lid ")) {
      const auto lid = IntAfter(text, "Lid "), port = IntAfter(text, " port ");
      counting_ = lid && port;
      asked_port_ = -1;
      wide_ = Contains(text, "extended");
      counted_any_ = false;
      if (!counting_) return false;
      counter_port_ = *port;
      counter_device_ = "LID " + std::to_string(*lid);
      return true;
    }
    const size_t dots = text.find(":...");
    if (!counting_ || dots == std::string_view::npos) return false;
    std::string_view value = text.substr(dots + 1);
    value = value.substr(std::min(value.find_first_not_of('.'), value.size()));
    int64_t count = 0;
    if (value.starts_with("0x") || !TakeNumber(value, &count)) return true;
    for (const ErrorCounter& counter : kErrorCounters) {
      if (text.substr(0, dots) != counter.name || count <= counter.limit) continue;
      const bool full = !wide_ && count >= counter.highest;
      if (!counted_any_ && out_.errors.size() < kMostPorts) {
        out_.errors.push_back({{counter_device_, host_, counter_port_, {}}, number_, offset_, std::string(text)});
        counted_any_ = true;
      }
      if (counted_any_ && out_.errors.back().errors.counted.size() < std::size(kErrorCounters))
        out_.errors.back().errors.counted.push_back(GroupDigits(std::to_string(count)) + (full ? " or more " : " ") +
                                                    std::string(counter.words));
    }
    return true;
  }

  // GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-7aa2cf10-...)
  //          Link 1: <inactive>
  bool TakeNvlink(std::string_view text) {
    std::string_view rest = text;
    int64_t number = -1;
    if (TakeLiteral(rest, "GPU ") && TakeNumber(rest, &number) && rest.starts_with(": ") &&
        (Contains(rest, "UUID: GPU-") || rest.starts_with(": NVIDIA ")) && text.size() < 120) {
      gpu_ = "GPU " + std::to_string(number);
      return true;
    }
    // gpuId 0:
    //     U U U D
    rest = text;
    if (TakeLiteral(rest, "gpuId ") && TakeNumber(rest, &number) && rest == ":") {
      gpu_ = "GPU " + std::to_string(number);
      return true;
    }
    if (!gpu_.empty() && (IsLinkLetters(text) || Contains(text, kAllInactive))) {
      for (size_t i = 0; i < text.size(); i += 2) {
        const bool all = Contains(text, kAllInactive);
        if (!all && text[i] == '_') continue;
        PortRow& row = RowOf(host_, gpu_, static_cast<int64_t>(i / 2), "");
        row.port.nvlink = true;
        Set(row, !all && text[i] == 'U' ? PortHealth::active : PortHealth::down, true);
        if (all) break;
      }
      return true;
    }
    rest = text;
    if (gpu_.empty() || !TakeLiteral(rest, "Link ") || !TakeNumber(rest, &number) || !TakeLiteral(rest, ": "))
      return false;
    if (Contains(rest, " Errors: ")) return TakeNvlinkErrors(rest, number);
    const bool inactive = rest == "<inactive>";
    if (!inactive && !rest.ends_with("GB/s")) return false;
    PortRow& row = RowOf(host_, gpu_, number, "");
    row.port.nvlink = true;
    Set(row, inactive ? PortHealth::down : PortHealth::active, true);
    return true;
  }

  //          Link 3: Recovery Errors: 2             nvidia-smi nvlink -e, which lists links that are active
  bool TakeNvlinkErrors(std::string_view text, int64_t link) {
    const size_t colon = text.find(" Errors: ");
    const std::string_view name = text.substr(0, colon);
    std::string_view digits = text.substr(colon + 9);
    int64_t count = 0;
    if (!TakeNumber(digits, &count) || !(name == "Replay" || name == "Recovery" || name == "CRC")) return false;
    PortRow& row = RowOf(host_, gpu_, link, "");
    row.port.nvlink = true;
    Set(row, PortHealth::active, true);
    // A packet that is sent again costs little; a link that had to be trained again is another matter.
    constexpr int64_t kFewResent = 1000;
    if (count <= (name == "Recovery" ? 0 : kFewResent)) return true;
    const std::string words = GroupDigits(std::to_string(count)) + (name == "Recovery" ? " recoveries"
                                                                     : name == "CRC"    ? " CRC errors"
                                                                                        : " replays");
    for (PortErrorRow& known : out_.errors)
      if (known.errors.device == gpu_ && known.errors.port == link && known.errors.host == host_)
        return known.errors.counted.push_back(words), true;
    if (out_.errors.size() < kMostPorts)
      out_.errors.push_back({{gpu_, host_, link, {words}}, number_, offset_, std::string(Trim(text_))});
    return true;
  }

  // CA: v100-3 HCA-1:
  //       0xb883...   6    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>   3    3[  ] "MF0;sw9:MQM8700/U1" ( )
  // Switch: 0x0c42a10300b977fa MF0;sw9:MQM8700/U1:
  //            3    9[  ] ==(                Down/ Polling)==>             [  ] "" ( )
  bool TakeLink(std::string_view text) {
    if (std::string_view head = text;
        text.ends_with(':') && (TakeLiteral(head, "CA: ") || TakeLiteral(head, "Switch: "))) {
      is_switch_ = text[0] == 'S';
      counted_ = false;
      head.remove_suffix(1);
      if (is_switch_) TakeWord(head);
      link_owner_ = Trim(head);
      return true;
    }
    const size_t open = text.find(" ==("), close = text.find(")==>");
    if (link_owner_.empty() || open == std::string_view::npos || close == std::string_view::npos || close < open)
      return false;
    const std::string_view state = Trim(text.substr(open + 4, close - open - 4));
    const size_t slash = state.find('/');
    const size_t bracket = text.rfind('[', open);
    if (slash == std::string_view::npos || bracket == std::string_view::npos) return false;
    size_t digits = bracket;
    while (digits > 0 && IsDigit(text[digits - 1])) --digits;
    int64_t port = -1;
    if (std::string_view number = text.substr(digits, bracket - digits); !TakeNumber(number, &port)) return false;
    const size_t word = state.rfind(' ', slash);
    const size_t begin = word == std::string_view::npos ? 0 : word + 1;
    const auto health = HealthOf(state.substr(begin, slash - begin));
    if (!health) return false;
    // Of a switch most ports may be free; its links are listed by their other ends, too.
    if (is_switch_ && *health != PortHealth::active) {
      ++out_.unlinked_switch_ports;
      out_.switches_with_unlinked += std::exchange(counted_, true) ? 0 : 1;
      return true;
    }
    std::string_view far = text.substr(close + 4);
    std::string peer, note;
    if (const size_t quote = far.find('"'); quote != std::string_view::npos) {
      far.remove_prefix(quote + 1);
      peer = far.substr(0, far.find('"'));
      if (const auto tail = After(far, "(")) note = Trim(tail->substr(0, tail->find(')')));
    }
    if (is_switch_ && IsListedFrom(peer, link_owner_)) return true;
    PortRow& row = RowOf(host_, link_owner_, port, "");
    row.port.infiniband = true;
    row.peer = std::move(peer);
    row.port.better = Contains(note, "Could be") ? std::move(note) : "";
    if (*health == PortHealth::active && word != std::string_view::npos)
      row.port.link = OneBlank(state.substr(0, word));
    Set(row, *health, true);
    TakePhysical(Trim(state.substr(slash + 1)), row.port);
    return true;
  }

  // The link from `owner` to `peer` was listed by the peer.
  bool IsListedFrom(std::string_view owner, std::string_view peer) const {
    return std::any_of(out_.ports.begin(), out_.ports.end(), [&](const PortRow& row) {
      return !row.port.link.empty() && row.port.device == owner && row.peer == peer;
    });
  }

  PortRow& RowOf(std::string_view host, std::string_view device, int64_t port, std::string_view interface) {
    for (PortRow& row : out_.ports) {
      if (row.port.host != host) continue;
      const bool same =
          device.empty() ? row.port.interface == interface : row.port.device == device && (row.port.port == port || port < 0);
      if (same && !(device.empty() && interface.empty())) return row;
    }
    if (out_.ports.size() >= kMostPorts) {
      spare_ = PortRow();
      return spare_;
    }
    PortRow& row = out_.ports.emplace_back();
    row.port.host = host;
    row.port.device = device;
    row.port.port = port;
    row.port.interface = interface;
    return row;
  }

  void Set(PortRow& row, PortHealth health, bool by_adapter) {
    if (row.line > 0 && row.by_adapter && !by_adapter) return;
    row.port.health = health;
    row.by_adapter = by_adapter;
    row.port.of_interface = false;
    row.line = number_;
    row.offset = offset_;
    row.text = Trim(text_).substr(0, 200);
  }

  // The state of a port's IP interface. On InfiniBand it is down wherever nobody set up IP (IPoIB), and RDMA needs
  // none: such a state is `of_interface` until the port's own is seen.
  void SetByInterface(PortRow& row, PortHealth health, bool of_interface) {
    if (row.line > 0 && row.by_adapter) return;
    Set(row, health, false);
    row.port.of_interface = of_interface && row.port.infiniband;
  }

  // A row that tells all of a port, maybe with a host before it: "gpu07: mlx5_0 port 1 ==> ib0 (Down)".
  bool TakeRow(std::string_view text) {
    std::string_view host = host_;
    std::string_view rest = text;
    // "[pod/gpu07/x] mlx5_0 port 1 ==> ib0 (Down)", as the layers below write where a line came from
    if (std::string_view name = rest; TakeLiteral(name, "[pod/")) {
      const size_t close = name.find("] ");
      if (close == std::string_view::npos) return false;
      host = name.substr(0, name.find_first_of("/]"));
      text_ = text = rest = Trim(name.substr(close + 2));
    }
    if (std::string_view head = rest, word = TakeWord(head);
        word.size() > 2 && word.ends_with(':') && word != "link:" && word.find('/') == std::string_view::npos &&
        !IsDigit(word[0])) {
      host = word.substr(0, word.size() - 1);
      rest = Trim(head);
    }
    return TakeNetdev(rest, host) || TakeRdmaLink(rest, host) || TakeInterface(text);
  }

  bool TakeNetdev(std::string_view rest, std::string_view host) {
    const auto netdev = ReadNetdevRow(rest);
    if (!netdev) return false;
    PortRow& row = RowOf(host, netdev->device, netdev->port, netdev->interface);
    row.port.interface = netdev->interface;
    row.port.infiniband |= IsIpOverInfiniband(netdev->interface);
    SetByInterface(row, netdev->health, netdev->health != PortHealth::active);
    return true;
  }

  // link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ib0
  // 0/1: mlx5_0/1: state DOWN physical_state DISABLED
  bool TakeRdmaLink(std::string_view rest, std::string_view host) {
    std::string_view word = TakeWord(rest);
    if (word == "link" || (word.ends_with(':') && IsDigit(word[0]))) word = TakeWord(rest);
    if (word.ends_with(':')) word.remove_suffix(1);
    const size_t slash = word.find('/');
    if (slash == std::string_view::npos || !IsDeviceName(word.substr(0, slash))) return false;
    std::string_view digits = word.substr(slash + 1);
    int64_t port = -1;
    if (!TakeNumber(digits, &port) || !digits.empty() || TakeWord(rest) != "state") return false;
    const auto health = HealthOf(TakeWord(rest));
    if (!health) return false;
    PortRow& row = RowOf(host, word.substr(0, slash), port, "");
    Set(row, *health, true);
    if (TakeWord(rest) == "physical_state") TakePhysical(TakeWord(rest), row.port);
    if (TakeWord(rest) == "netdev") {
      row.port.interface = TakeWord(rest);
      row.port.infiniband |= IsIpOverInfiniband(row.port.interface);
    }
    return true;
  }

  // ib0   DOWN   80:00:02:08 <NO-CARRIER,BROADCAST,MULTICAST,UP>
  // 4: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 4092 qdisc mq state DOWN mode DEFAULT group default qlen 256
  bool TakeInterface(std::string_view text) {
    const size_t open = text.find('<'), close = text.find('>');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return false;
    const std::string_view flags = text.substr(open, close - open);
    if (!Contains(flags, "MULTICAST") && !Contains(flags, "LOOPBACK")) return false;
    std::string_view rest = text, name = TakeWord(rest), state;
    if (IsDigit(name[0]) && name.ends_with(':')) {
      name = TakeWord(rest);
      if (!name.ends_with(':')) return false;
      name.remove_suffix(1);
      auto word = After(text, " state ");
      if (!word) return false;
      state = TakeWord(*word);
    } else {
      state = TakeWord(rest);
    }
    name = name.substr(0, name.find('@'));
    if (!IsDeviceName(name) || (state != "UP" && state != "DOWN" && state != "UNKNOWN")) return false;
    if (IsVirtual(name) || state == "UNKNOWN") return true;
    PortRow& row = RowOf(host_, "", -1, name);
    row.port.infiniband |= IsIpOverInfiniband(name);
    const bool meant = !Contains(flags, ",UP") && !Contains(flags, "<UP");
    // NO-CARRIER of an interface that is up is the port's own state; one that nobody set up shows none.
    SetByInterface(row,
                   state == "UP" ? PortHealth::active
                   : meant       ? PortHealth::disabled
                                 : PortHealth::down,
                   state != "UP" && meant);
    return true;
  }

  // The blocks of ibstat, ibstatus and ibv_devinfo: a device, its ports, and a line for each of their properties.
  bool TakeBlock(std::string_view line, std::string_view text) {
    if (std::string_view name = text; TakeLiteral(name, "CA '") && name.ends_with('\'')) {
      device_ = name.substr(0, name.size() - 1);
      port_ = -1;
      unnamed_ = 0;
      return true;
    }
    if (std::string_view name = text; TakeLiteral(name, "hca_id:")) {
      device_ = Trim(name);
      port_ = -1;
      return IsDeviceName(device_);
    }
    if (std::string_view name = text; TakeLiteral(name, "Infiniband device '")) {
      const size_t quote = name.find('\'');
      if (quote == std::string_view::npos) return false;
      device_ = name.substr(0, quote);
      port_ = IntAfter(name, "port ").value_or(-1);
      return true;
    }
    // All that follows is indented below it.
    if (device_.empty() || line.empty() || (line[0] != ' ' && line[0] != '\t')) {
      if (!text.empty()) device_.clear();
      return false;
    }
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view key = text.substr(0, colon), value = Trim(text.substr(colon + 1));
    if (key.starts_with("Port ") && value.empty()) {
      std::string_view digits = key.substr(5);
      return TakeNumber(digits, &port_) && digits.empty();
    }
    if (key == "port") {
      std::string_view digits = value;
      return TakeNumber(digits, &port_);
    }
    // ibstat | egrep "CA '|State": no adapter has a state, so that each is of its next port.
    if (key == "State" && (port_ < 0 || unnamed_ > 0)) port_ = ++unnamed_;
    if (port_ < 0) return true;  // properties of the adapter
    if (key == "State" || key == "state") {
      const auto health = HealthOf(value);
      if (health) Set(RowOf(host_, device_, port_, ""), *health, true);
      return health.has_value();
    }
    PortRow* row = Known();
    if (key == "Physical state" || key == "phys state" || key == "phys_state") {
      if (row) TakePhysical(value, row->port);
    } else if (key == "Link layer" || key == "link_layer") {
      if (row) row->port.infiniband = value == "InfiniBand";
    }
    return true;
  }

  PortRow* Known() {
    for (PortRow& row : out_.ports)
      if (row.port.host == host_ && row.port.device == device_ && row.port.port == port_) return &row;
    return nullptr;
  }

  std::string_view bytes_, text_;
  PortTable out_;
  PortRow spare_;
  std::string host_, device_, link_owner_;
  std::string asked_device_;  // whose port was asked for by its number
  int64_t asked_port_ = -1;
  std::string counter_device_, gpu_;  // whose counters, or links, are listed
  int64_t counter_port_ = -1;
  bool counting_ = false, wide_ = false, counted_any_ = false;
  bool is_switch_ = false;
  bool counted_ = false;  // this switch, among those with ports without a link
  int64_t port_ = -1;
  int64_t unnamed_ = 0;  // ports of this adapter whose number is not told
  uint32_t number_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace

bool IsPortLine(std::string_view line) {
  line = Trim(line);
  if (line.size() > kLongestLine) return false;
  if (Contains(line, " ==> ") && Contains(line, " port ")) {
    // "gpu07: mlx5_0 port 1 ==> ib0 (Down)": pdsh and logs of pods write before the row whose it is.
    const size_t head = line.substr(0, line.find(" port ")).find_last_of(": ]", line.find(" port ") - 1);
    return ReadNetdevRow(line).has_value() ||
           (head != std::string_view::npos && ReadNetdevRow(Trim(line.substr(head + 1))).has_value());
  }
  if (Contains(line, " ==(") && Contains(line, ")==>")) return true;
  if (line.starts_with("# Port info: Lid ") || line.starts_with("# Port counters: Lid ") ||
      line.starts_with("# Port extended counters: Lid "))
    return true;
  if (IsLinkLetters(line) || Contains(line, kAllInactive)) return true;
  if (line.starts_with("Link ") && line.size() > 5 && IsDigit(line[5]) && line.size() < 40)
    return line.ends_with(": <inactive>") || line.ends_with(" GB/s") || Contains(line, " Errors: ");
  if (Contains(line, " physical_state ") && Contains(line, " state ")) return true;
  if (line.starts_with("hca_id:") || line.starts_with("CA '") || line.starts_with("Infiniband device '")) return true;
  return Contains(line, "MULTICAST") && Contains(line, "<") &&
         (Contains(line, " state DOWN") || Contains(line, " state UP") || Contains(line, " DOWN ") ||
          Contains(line, " UP "));
}

PortTable ParsePortTable(std::string_view bytes) { return PortReader(bytes).Read(); }

}  // namespace tacet
