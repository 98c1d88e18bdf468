// SPDX-License-Identifier: Apache-2.0
// Messages of devices: memory errors, PCIe, NVLink without an Xid, network links.
#include "base/text_scan.h"
#include "evidence/kernel_log/kernel_log_parse.h"

namespace tacet {
namespace {

using Kind = KernelRecord::Kind;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// `part` in small letters.
size_t FindAnyCase(std::string_view text, std::string_view part) {
  for (size_t i = 0; i + part.size() <= text.size(); ++i) {
    size_t n = 0;
    while (n < part.size() && Lower(text[i + n]) == part[n]) ++n;
    if (n == part.size()) return i;
  }
  return std::string_view::npos;
}
bool HasAnyCase(std::string_view text, std::string_view part) {
  return FindAnyCase(text, part) != std::string_view::npos;
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// "0000:5c:00.0", also "0000:5c:00.0:" and "10000:e1:00.0"
std::string_view PciAddress(std::string_view word) {
  while (!word.empty() && (word.back() == ':' || word.back() == ',' || word.back() == ')')) word.remove_suffix(1);
  const size_t dot = word.rfind('.');
  if (dot == std::string_view::npos || dot < 10 || dot + 2 != word.size() || word[dot - 3] != ':' ||
      word[dot - 6] != ':')
    return {};
  for (const char c : word)
    if (!IsHex(c) && c != ':' && c != '.') return {};
  return word;
}

// The last PCI address of `text`.
std::string_view LastPciAddress(std::string_view text) {
  std::string_view found;
  while (!text.empty()) {
    const std::string_view word = TakeWord(text);
    if (word.empty()) break;
    if (const std::string_view address = PciAddress(word); !address.empty()) found = address;
  }
  return found;
}

// An interface or HCA: "eth0", "ens1f0np0", "ib0", "mlx5_0", "bond0"; drivers and PCI addresses are none.
std::string_view InterfaceName(std::string_view word) {
  while (!word.empty() && (word.back() == ':' || word.back() == ',' || word.back() == ')')) word.remove_suffix(1);
  if (word.starts_with('(')) word.remove_prefix(1);
  if (word.size() < 2 || word.size() > 15 || !(word[0] >= 'a' && word[0] <= 'z')) return {};
  bool digit = false;
  for (const char c : word) {
    digit = digit || (c >= '0' && c <= '9');
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '.' &&
        c != '-' && c != '@')
      return {};
  }
  for (const std::string_view driver :
       {"mlx5_core", "mlx4_core", "mlx4_en", "e1000", "e1000e", "i40e", "igb", "r8169", "tg3", "8021q"})
    if (word == driver) return {};
  return digit ? word : std::string_view();
}

// The device a link message speaks of: the interface nearest before the phrase, else a PCI address.
std::string_view LinkSubject(std::string_view before) {
  std::string_view interface, text = before;
  while (!text.empty()) {
    const std::string_view word = TakeWord(text);
    if (word.empty()) break;
    if (const std::string_view name = InterfaceName(word); !name.empty()) interface = name;
  }
  return interface.empty() ? LastPciAddress(before) : interface;
}

// pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0
// nvidia 0000:3b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)
// pcieport 0000:3a:00.0: pciehp: Slot(4): Link Down
// pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01 source:0x0000
KernelMessage ParsePcie(std::string_view message, KernelRecord* out) {
  out->kind = Kind::pcie_error;
  out->text = message;
  std::string_view severity;
  if (const size_t at = message.find("PCIe Bus Error: severity="); at != std::string_view::npos) {
    severity = message.substr(at + 25);
    out->subject = LastPciAddress(message.substr(0, at));
  } else if (const size_t aer = message.find("AER: "); aer != std::string_view::npos) {
    severity = message.substr(aer + 5);
    TakeLiteral(severity, "Multiple ");
    if (severity.starts_with("device recovery failed") || severity.starts_with("can't recover")) {
      out->value = 2;
      out->subject = LastPciAddress(message.substr(0, aer));
      return KernelMessage::record;
    }
    if (!Contains(severity, "error received") && !Contains(severity, "message received")) return KernelMessage::context;
    out->subject = LastPciAddress(severity);
    if (out->subject.empty()) out->subject = LastPciAddress(message.substr(0, aer));
  } else if (Contains(message, "Slot(") &&
             (HasAnyCase(message, "link down") || Contains(message, "Card not present"))) {
    out->value = 2;
    out->subject = LastPciAddress(message.substr(0, message.find("Slot(")));
    return KernelMessage::record;
  } else if (Contains(message, "DPC: containment event")) {
    out->value = 2;
    out->subject = LastPciAddress(message.substr(0, message.find("DPC: ")));
    return KernelMessage::record;
  } else {
    return KernelMessage::nothing;
  }
  if (severity.starts_with("Corr"))
    out->value = 0;
  else if (severity.starts_with("Uncorr") || severity.starts_with("Fatal"))
    out->value = Contains(severity.substr(0, 40), "Fatal") && !Contains(severity.substr(0, 40), "Non-Fatal") ? 2 : 1;
  else
    return KernelMessage::context;
  return KernelMessage::record;
}

// EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1f2 offset:0x0)
// mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000800400
// Memory failure: 0x1f2b7: Sending SIGBUS to python:4711 due to hardware memory corruption
// amdgpu 0000:05:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block
KernelMessage ParseEcc(std::string_view message, KernelRecord* out) {
  out->kind = Kind::ecc_error;
  out->text = message;
  if (message.starts_with("EDAC ")) {
    std::string_view rest = message.substr(5);
    const size_t controller = rest.find("MC");
    if (controller == std::string_view::npos) return KernelMessage::context;
    rest.remove_prefix(controller);
    out->subject = rest.substr(0, rest.find(':'));
    const auto numbers = After(rest, ": ");
    int64_t count = 0;
    std::string_view tail = numbers.value_or(std::string_view());
    if (!TakeNumber(tail, &count) || count < 1 || count > 1'000'000'000 ||
        !(tail.starts_with(" CE ") || tail.starts_with(" UE ")))
      return KernelMessage::context;
    out->value = tail.starts_with(" UE ") ? 1 : 0;
    out->count = count;
    return KernelMessage::record;
  }
  if (Contains(message, "due to hardware memory corruption")) {
    out->value = 1;
    out->subject = "memory";
    for (const std::string_view key : {"Sending SIGBUS to ", "Killing "})
      if (const auto task = After(message, key))
        if (const size_t colon = task->find(':'); colon != std::string_view::npos) {
          std::string_view digits = task->substr(colon + 1);
          TakeNumber(digits, &out->pid);
        }
    return KernelMessage::record;
  }
  if (Contains(message, "[Hardware Error]: ")) {
    out->subject = "machine check";
    if (Contains(message, "Machine Check Exception") || HasAnyCase(message, "uncorrected error") ||
        HasAnyCase(message, "severity: fatal") || HasAnyCase(message, "uncorrected hardware memory error"))
      return out->value = 1, KernelMessage::record;
    if (HasAnyCase(message, "corrected error") || Contains(message, "Machine check events logged"))
      return out->value = 0, KernelMessage::record;
    return KernelMessage::context;
  }
  if (Contains(message, "correctable hardware errors")) {
    out->value = Contains(message, "uncorrectable hardware errors") ? 1 : 0;
    out->subject = LastPciAddress(message);
    return KernelMessage::record;
  }
  if (message.starts_with("NVRM: ") && Contains(message, "ECC") && HasAnyCase(message, "uncorrect")) {
    out->value = 1;
    out->subject = LastPciAddress(message);
    return KernelMessage::record;
  }
  return KernelMessage::nothing;
}

// NVRM: knvlinkCoreShutdownDeviceLinks_IMPL: NVLink fatal error detected on link 4
KernelMessage ParseNvlink(std::string_view message, KernelRecord* out) {
  if (!message.starts_with("NVRM: ") && !message.starts_with("nvidia-nvlink") && !message.starts_with("nvidia "))
    return KernelMessage::nothing;
  if (!HasAnyCase(message, "nvlink") ||
      !(HasAnyCase(message, "error") || HasAnyCase(message, "fail") || HasAnyCase(message, "fatal")))
    return KernelMessage::nothing;
  // NVRM: ... NVLink fabric state cached by the driver is out of sync [NV_ERR_FABRIC_STATE_OUT_OF_SYNC] ...
  // No link is broken: the driver and the fabric manager have lost each other.
  out->kind = Contains(message, "NV_ERR_FABRIC_STATE_OUT_OF_SYNC") ? Kind::fabric_stale : Kind::nvlink_error;
  out->text = message;
  out->subject = LastPciAddress(message);
  return KernelMessage::record;
}

// infiniband mlx5_0: create_mkey_warn:158:(pid 2163): async reg mr failed. status -121
// mlx5_core 0000:41:00.0: mlx5_cmd_out_err:800:(pid 2335): CREATE_MKEY(0x200) op_mod(0x0) failed, status limits
// exceeded(0x8), syndrome (0x18af6), err(-12)
// The adapter's firmware refuses a command; the kernel prints the number of the status, and its words.
KernelMessage ParseAdapterFirmware(std::string_view message, KernelRecord* out) {
  std::string_view rest = message;
  if (!TakeLiteral(rest, "infiniband ") && !rest.starts_with("mlx")) return KernelMessage::nothing;
  if (rest.starts_with("mlx") && Contains(rest.substr(0, 12), "_core ")) TakeWord(rest);
  std::string_view device = TakeWord(rest);
  if (!device.ends_with(':')) return KernelMessage::nothing;
  device.remove_suffix(1);
  const bool command = Contains(rest, ") failed, status ") || Contains(rest, ") failed, status:");
  const bool memory = Contains(rest, "reg mr failed") || Contains(rest, "create_mkey");
  if (!command && !(memory && Contains(rest, "failed"))) return KernelMessage::nothing;
  int64_t code = 0;
  for (const std::string_view key : {"err(-", "err -", "status -"})
    if (const auto number = IntAfter(rest, key); number && *number > 0 && *number < 4096 && code == 0) code = *number;
  // What the firmware lacks is told by its status, whatever number the driver makes of it.
  constexpr int64_t kNoMemory = 12;
  if (Contains(rest, "limits exceeded") || Contains(rest, "no resources") || Contains(rest, "exceed lim"))
    code = kNoMemory;
  if (command && !ContainsAny(rest, {"CREATE_", "ALLOC_", "limits exceeded", "no resources", "exceed lim"}))
    return KernelMessage::context;
  if (code == 0) return KernelMessage::context;
  out->kind = Kind::rdma_failed;
  out->text = message;
  out->subject = device;
  out->value = code;
  return KernelMessage::record;
}

// infiniband efa_0: Failed to process command ALLOC_PD (opcode 14) comp_status 1 err -12
// infiniband efa_0: Failed to allocate pd[-12]
// The driver refuses what a process asks of the adapter.
KernelMessage ParseAdapterCommand(std::string_view message, KernelRecord* out) {
  std::string_view rest = message;
  if (!TakeLiteral(rest, "infiniband ")) return KernelMessage::nothing;
  std::string_view device = TakeWord(rest);
  if (device.size() < 3 || !device.ends_with(':')) return KernelMessage::nothing;
  device.remove_suffix(1);
  if (!Trim(rest).starts_with("Failed to ")) return KernelMessage::nothing;
  int64_t code = 0;
  for (const std::string_view key : {" err -", "[-", " error -", " ret -"})
    if (const auto number = IntAfter(rest, key); number && *number > 0 && *number < 4096) code = *number;
  if (code == 0) return KernelMessage::context;
  out->kind = Kind::rdma_failed;
  out->text = message;
  out->subject = device;
  out->value = code;
  return KernelMessage::record;
}

}  // namespace

KernelMessage ParseHardwareMessage(std::string_view message, KernelRecord* out) {
  for (const auto parse : {ParseNvlink, ParseEcc, ParsePcie, ParseAdapterCommand, ParseAdapterFirmware}) {
    *out = {};
    if (const KernelMessage answer = parse(message, out); answer != KernelMessage::nothing) return answer;
  }
  *out = {};
  return KernelMessage::nothing;
}

// mlx5_core 0000:0c:00.0 ens1f0np0: Link down
// igb 0000:01:00.0 enp1s0f0: igb: enp1s0f0 NIC Link is Up 1000 Mbps Full Duplex
// IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready
// bond0: (slave ens1f0): link status definitely down, disabling slave
// mlx5_core 0000:5c:00.0: Port module event: module 0, Cable unplugged
// userif-5: sent link down event.      (VMware's: what it tells a virtual machine of that machine's adapter)
KernelMessage ParseLinkMessage(std::string_view message, KernelRecord* out) {
  *out = {};
  out->text = message;
  struct Phrase {
    std::string_view words;
    bool up;
  };
  static constexpr Phrase kPhrases[] = {
      {"link is down", false},
      {"link is up", true},
      {"link down", false},
      {"link up", true},
      {"link is not ready", false},
      {"link becomes ready", true},
      {"link status definitely down", false},
      {"link status definitely up", true},
      {"link status up", true},
      {"cable unplugged", false},
      {"now running without any active interface", false},
  };
  if (!Contains(message, "ink ") && !Contains(message, "unplugged") && !Contains(message, "interface!"))
    return KernelMessage::nothing;
  if (message.starts_with("ata") || message.starts_with("userif-") || HasAnyCase(message, "nvlink") ||
      Contains(message, "Slot("))
    return KernelMessage::nothing;
  for (const Phrase& phrase : kPhrases) {
    const size_t at = FindAnyCase(message, phrase.words);
    if (at == std::string_view::npos) continue;
    out->kind = phrase.up ? Kind::link_up : Kind::link_down;
    out->subject = LinkSubject(message.substr(0, at));
    if (const auto named = After(message.substr(at), "for interface ")) {  // bonding of older kernels
      std::string_view rest = *named;
      out->subject = InterfaceName(TakeWord(rest));
    }
    return out->subject.empty() ? KernelMessage::nothing : KernelMessage::record;
  }
  return KernelMessage::nothing;
}

}  // namespace tacet
