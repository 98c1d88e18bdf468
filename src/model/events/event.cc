// SPDX-License-Identifier: Apache-2.0
#include "model/events/event.h"

namespace tacet {

Event::Event() = default;
Event::Event(const Event&) = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(const Event&) = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

template <class T>
T& Event::Make() {
  T* held = std::get_if<T>(&detail);
  return held ? *held : detail.emplace<T>();
}

template ProcessStart& Event::Make<ProcessStart>();
template Progress& Event::Make<Progress>();
template ProcessFinish& Event::Make<ProcessFinish>();
template ProcessEnd& Event::Make<ProcessEnd>();
template Abort& Event::Make<Abort>();
template Segfault& Event::Make<Segfault>();
template WatchdogTimeout& Event::Make<WatchdogTimeout>();
template WorkCounters& Event::Make<WorkCounters>();
template FilePath& Event::Make<FilePath>();
template XlaWait& Event::Make<XlaWait>();
template HeartbeatStuck& Event::Make<HeartbeatStuck>();
template LostPeer& Event::Make<LostPeer>();
template MismatchReport& Event::Make<MismatchReport>();
template BarrierFailure& Event::Make<BarrierFailure>();
template DdpParameters& Event::Make<DdpParameters>();
template Raised& Event::Make<Raised>();
template CudaError& Event::Make<CudaError>();
template NcclError& Event::Make<NcclError>();
template StoreWait& Event::Make<StoreWait>();
template Rendezvous& Event::Make<Rendezvous>();
template StoreUnreachable& Event::Make<StoreUnreachable>();
template ModelMismatch& Event::Make<ModelMismatch>();
template ConnectFailure& Event::Make<ConnectFailure>();
template Version& Event::Make<Version>();
template CommunicatorSetup& Event::Make<CommunicatorSetup>();
template CommunicatorEnd& Event::Make<CommunicatorEnd>();
template EnvironmentSetting& Event::Make<EnvironmentSetting>();
template NetworkName& Event::Make<NetworkName>();
template NetworkDevice& Event::Make<NetworkDevice>();
template PairTransport& Event::Make<PairTransport>();
template Warning& Event::Make<Warning>();
template NodeCount& Event::Make<NodeCount>();
template GpuDirect& Event::Make<GpuDirect>();
template RasReport& Event::Make<RasReport>();
template OomKill& Event::Make<OomKill>();
template Xid& Event::Make<Xid>();
template HardwareError& Event::Make<HardwareError>();
template HungTask& Event::Make<HungTask>();
template NetworkLink& Event::Make<NetworkLink>();
template IommuFault& Event::Make<IommuFault>();
template StorageLoss& Event::Make<StorageLoss>();
template TimeLimit& Event::Make<TimeLimit>();
template NodeFailure& Event::Make<NodeFailure>();
template OutsideEnd& Event::Make<OutsideEnd>();
template NoSpace& Event::Make<NoSpace>();
template PortTaken& Event::Make<PortTaken>();
template CudaRefusal& Event::Make<CudaRefusal>();
template RdmaFailure& Event::Make<RdmaFailure>();
template DesyncReport& Event::Make<DesyncReport>();
template Pending& Event::Make<Pending>();
template PortState& Event::Make<PortState>();
template ToldPlace& Event::Make<ToldPlace>();
template GpuLoad& Event::Make<GpuLoad>();
template SpaceUse& Event::Make<SpaceUse>();
template ListedNodes& Event::Make<ListedNodes>();
template SlowRankReport& Event::Make<SlowRankReport>();
template HostMemoryUse& Event::Make<HostMemoryUse>();
template PortErrors& Event::Make<PortErrors>();
template GpuCheck& Event::Make<GpuCheck>();
template ToldRemedy& Event::Make<ToldRemedy>();
template GuardedCall& Event::Make<GuardedCall>();

}  // namespace tacet
