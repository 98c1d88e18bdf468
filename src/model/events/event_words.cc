// SPDX-License-Identifier: Apache-2.0
#include "model/events/event_words.h"

#include <string>
#include <variant>

namespace tacet {
namespace {

struct FindWord {
  template <class T>
  std::string_view operator()(const T&) const {
    return {};
  }
  std::string_view operator()(const ProcessFinish& one) const { return one.how; }
  std::string_view operator()(const ProcessEnd& one) const { return one.how; }
  std::string_view operator()(const Abort& one) const { return one.reason; }
  std::string_view operator()(const Segfault& one) const { return one.process; }
  std::string_view operator()(const FilePath& one) const { return one.path; }
  std::string_view operator()(const HeartbeatStuck& one) const { return one.reason; }
  std::string_view operator()(const XlaWait& one) const { return one.name; }
  std::string_view operator()(const Pending& one) const { return one.reason; }
  std::string_view operator()(const PortState& one) const { return one.device; }
  std::string_view operator()(const PortErrors& one) const { return one.device; }
  std::string_view operator()(const GpuCheck& one) const { return one.test; }
  std::string_view operator()(const ToldPlace& one) const { return one.where; }
  std::string_view operator()(const SpaceUse& one) const { return one.mount; }
  std::string_view operator()(const ListedNodes& one) const { return one.nodes; }
  std::string_view operator()(const HostMemoryUse& one) const { return one.share; }
  std::string_view operator()(const SlowRankReport& one) const { return one.host; }
  std::string_view operator()(const LostPeer& one) const { return one.address; }
  std::string_view operator()(const MismatchReport& one) const { return one.aspect; }
  std::string_view operator()(const DdpParameters& one) const { return one.names; }
  std::string_view operator()(const Raised& one) const { return one.type; }
  std::string_view operator()(const CudaError& one) const { return one.words; }
  std::string_view operator()(const NcclError& one) const { return one.result; }
  std::string_view operator()(const StoreWait& one) const { return one.keys; }
  std::string_view operator()(const Rendezvous& one) const { return one.waiting ? "waiting" : ""; }
  std::string_view operator()(const StoreUnreachable& one) const { return one.address; }
  std::string_view operator()(const ModelMismatch& one) const { return one.aspect; }
  std::string_view operator()(const ConnectFailure& one) const { return one.words; }
  std::string_view operator()(const Version& one) const { return one.number; }
  std::string_view operator()(const CommunicatorSetup& one) const { return one.bus_id; }
  std::string_view operator()(const CommunicatorEnd& one) const { return one.how; }
  std::string_view operator()(const EnvironmentSetting& one) const { return one.name; }
  std::string_view operator()(const NetworkName& one) const { return one.name; }
  std::string_view operator()(const NetworkDevice& one) const { return one.name; }
  std::string_view operator()(const PairTransport& one) const { return one.via; }
  std::string_view operator()(const Warning& one) const { return one.id; }
  std::string_view operator()(const ToldRemedy& one) const { return one.setting; }
  std::string_view operator()(const GuardedCall& one) const { return one.call; }
  std::string_view operator()(const GpuDirect& one) const { return one.adapter; }
  std::string_view operator()(const RasReport& one) const { return one.event; }
  std::string_view operator()(const OomKill& one) const { return one.process; }
  std::string_view operator()(const Xid& one) const { return one.pci; }
  std::string_view operator()(const HardwareError& one) const { return one.device; }
  std::string_view operator()(const HungTask& one) const { return one.process; }
  std::string_view operator()(const NetworkLink& one) const { return one.device; }
  std::string_view operator()(const IommuFault& one) const { return one.pci; }
  std::string_view operator()(const TimeLimit& one) const { return one.scheduler; }
  std::string_view operator()(const NodeFailure& one) const { return one.node; }
  std::string_view operator()(const CudaRefusal& one) const { return one.words; }
  std::string_view operator()(const RdmaFailure& one) const { return one.only_warned ? "limit" : ""; }
};

}  // namespace

std::string_view WordOf(const Event& event) { return std::visit(FindWord(), event.detail); }

std::string_view MessageOf(const Event& event) {
  if (const auto* setting = std::get_if<EnvironmentSetting>(&event.detail)) return setting->value;
  if (const auto* device = std::get_if<NetworkDevice>(&event.detail)) return device->address;
  return event.text;
}

std::string_view KernelDeviceOf(const Event& event) {
  if (const auto* fault = std::get_if<Xid>(&event.detail)) return fault->pci;
  if (const auto* error = std::get_if<HardwareError>(&event.detail)) return error->device;
  if (const auto* refused = std::get_if<IommuFault>(&event.detail)) return refused->pci;
  if (const auto* link = std::get_if<NetworkLink>(&event.detail)) return link->device;
  return {};
}

}  // namespace tacet
