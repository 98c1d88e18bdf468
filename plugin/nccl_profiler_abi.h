// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

// NCCL's profiler plugin interface, versions 1 to 7, declared here so that the plugin builds without NCCL and CUDA.
// Names of members follow NCCL's; nccl_profiler_abi.cc asserts every size and offset that matters.
namespace tacet::nccl {

using Result = int;  // ncclResult_t; 0 is success
inline constexpr Result kSuccess = 0;
using Logger = void (*)(int level, unsigned long subsystems, const char* file, int line, const char* format, ...);
inline constexpr int kLogWarn = 2, kLogInfo = 3;
inline constexpr unsigned long kLogInit = 1;

enum EventType : uint64_t {
  kGroup = 0x1,
  kColl = 0x2,
  kP2p = 0x4,
  kProxyOp = 0x8,
  kProxyStep = 0x10,
  kProxyCtrl = 0x20,
  kKernelCh = 0x40,
  kNetPlugin = 0x80,
  kGroupApi = 0x100,
  kCollApi = 0x200,
  kP2pApi = 0x400,
  kKernelLaunch = 0x800,
  kCeColl = 0x1000,
  kCeSync = 0x2000,
  kCeBatch = 0x4000,
  kKernelPhase = 0x8000,
};

enum State : int {
  kProxyOpSendPosted = 0,
  kProxyOpSendRemFifoWait = 1,
  kProxyOpSendTransmitted = 2,
  kProxyOpSendDone = 3,
  kProxyOpRecvPosted = 4,
  kProxyOpRecvReceived = 5,
  kProxyOpRecvTransmitted = 6,
  kProxyOpRecvDone = 7,
  kStepSendGpuWait = 8,
  kStepSendWait = 9,
  kStepRecvWait = 10,
  kStepRecvFlushWait = 11,
  kStepRecvGpuWait = 12,
  kProxyOpInProgress = 19,
  kStepSendPeerWait = 20,
  kNetPluginUpdate = 21,
  kKernelChStop = 22,
  kGroupStartApiStop = 23,
  kGroupEndApiStart = 24,
};

// Shared by several versions under the same layout.
struct ProxyOpPart {
  pid_t pid;
  uint8_t channelId;
  int peer, nSteps, chunkSize, isSend;
};
struct ProxyStepPart {
  int step;
};
struct NetPluginPart {
  int64_t id;
  void* data;
};
struct KernelChPart {
  uint8_t channelId;
  uint64_t pTimer;
};
struct GroupApiPart {
  bool graphCaptured;
  int groupDepth;
};
struct KernelLaunchPart {
  void* stream;
};
struct CeSyncPart {
  bool isComplete;
  int nRanks;
};
struct CeBatchPart {
  int numOps;
  size_t totalBytes;
  bool useIntraSync;
};

struct DescrV1 {
  uint8_t type;
  void* parentObj;
  int rank;
  struct CollPart {
    const char* name;
    uint64_t commHash, seqNumber;
    uint8_t func;
    const void* sendBuff;
    void* recvBuff;
    size_t count;
    int root;
    uint8_t datatype;
    uint32_t op;
    size_t trafficBytes;
    uint8_t nMaxChannels, nWarps, algo, proto;
    int isCollnet, isNvls;
  };
  struct P2pPart {
    const char* name;
    uint64_t commHash;
    uint8_t func;
    void* buff;
    uint8_t datatype;
    size_t count;
    int peer;
  };
  union {
    CollPart coll;
    P2pPart p2p;
    ProxyOpPart proxyOp;
    ProxyStepPart proxyStep;
  };
};

struct DescrV2 {
  uint8_t type;
  void* parentObj;
  int rank;
  struct CollPart {
    const char* name;
    uint64_t commHash, seqNumber;
    const char* func;
    const void* sendBuff;
    void* recvBuff;
    size_t count;
    int root;
    const char* datatype;
    size_t trafficBytes;
    uint8_t nMaxChannels, nWarps;
    const char *algo, *proto;
  };
  struct P2pPart {
    const char* name;
    uint64_t commHash;
    const char* func;
    void* buff;
    const char* datatype;
    size_t count;
    int peer;
  };
  union {
    CollPart coll;
    P2pPart p2p;
    ProxyOpPart proxyOp;
    ProxyStepPart proxyStep;
  };
};

struct DescrV3 {
  uint8_t type;
  void* parentObj;
  int rank;
  struct CollPart {
    const char* name;
    uint64_t commHash, seqNumber;
    const char* func;
    const void* sendBuff;
    void* recvBuff;
    size_t count;
    int root;
    const char* datatype;
    uint8_t nMaxChannels, nWarps;
    const char *algo, *proto;
  };
  using P2pPart = DescrV2::P2pPart;
  struct KernelChPart {
    uint8_t channelId;
  };
  union {
    CollPart coll;
    P2pPart p2p;
    ProxyOpPart proxyOp;
    ProxyStepPart proxyStep;
    KernelChPart kernelCh;
    NetPluginPart netPlugin;
  };
};

struct DescrV4 {
  uint8_t type;
  void* parentObj;
  int rank;
  struct CollPart {
    uint64_t seqNumber;
    const char* func;
    const void* sendBuff;
    void* recvBuff;
    size_t count;
    int root;
    const char* datatype;
    uint8_t nChannels, nWarps;
    const char *algo, *proto;
  };
  struct P2pPart {
    const char* func;
    void* buff;
    const char* datatype;
    size_t count;
    int peer;
    uint8_t nChannels;
  };
  union {
    CollPart coll;
    P2pPart p2p;
    ProxyOpPart proxyOp;
    ProxyStepPart proxyStep;
    KernelChPart kernelCh;
    NetPluginPart netPlugin;
  };
};

struct DescrV5 {
  uint64_t type;
  void* parentObj;
  int rank;
  struct CollApiPart {
    const char* func;
    size_t count;
    const char* datatype;
    int root;
    void* stream;
    bool graphCaptured;
  };
  struct P2pApiPart {
    const char* func;
    size_t count;
    const char* datatype;
    void* stream;
    bool graphCaptured;
  };
  struct CollPart {
    uint64_t seqNumber;
    const char* func;
    const void* sendBuff;
    void* recvBuff;
    size_t count;
    int root;
    const char* datatype;
    uint8_t nChannels, nWarps;
    const char *algo, *proto;
    void* parentGroup;
  };
  struct P2pPart {
    const char* func;
    void* buff;
    const char* datatype;
    size_t count;
    int peer;
    uint8_t nChannels;
    void* parentGroup;
  };
  union {
    GroupApiPart groupApi;
    CollApiPart collApi;
    P2pApiPart p2pApi;
    KernelLaunchPart kernelLaunch;
    CollPart coll;
    P2pPart p2p;
    ProxyOpPart proxyOp;
    ProxyStepPart proxyStep;
    KernelChPart kernelCh;
    NetPluginPart netPlugin;
  };
};

struct DescrV6 {
  uint64_t type;
  void* parentObj;
  int rank;
  using CollApiPart = DescrV5::CollApiPart;
  using P2pApiPart = DescrV5::P2pApiPart;
  using CollPart = DescrV5::CollPart;
  using P2pPart = DescrV5::P2pPart;
  struct CeCollPart {
    uint64_t seqNumber;
    const char* func;
    const void* sendBuff;
    void* recvBuff;
    size_t count;
    int root;
    const char *datatype, *syncStrategy;
    bool intraBatchSync;
    uint32_t batchSize, numBatches, ceSeqNum;
    void* stream;
  };
  union {
    GroupApiPart groupApi;
    CollApiPart collApi;
    P2pApiPart p2pApi;
    KernelLaunchPart kernelLaunch;
    CollPart coll;
    P2pPart p2p;
    ProxyOpPart proxyOp;
    ProxyStepPart proxyStep;
    KernelChPart kernelCh;
    NetPluginPart netPlugin;
    CeCollPart ceColl;
    CeSyncPart ceCollSync;
    CeBatchPart ceCollBatch;
  };
};

struct DescrV7 {
  uint64_t type;
  void* parentObj;
  int rank;
  struct CollApiPart {
    const char* func;
    size_t count;
    const char* datatype;
    int root;
    void* stream;
    bool graphCaptured;
    uint64_t userTag;
  };
  struct P2pApiPart {
    const char* func;
    size_t count;
    const char* datatype;
    void* stream;
    bool graphCaptured;
    uint64_t userTag;
  };
  struct CollPart {
    uint64_t seqNumber;
    const char* func;
    const void* sendBuff;
    void* recvBuff;
    size_t count;
    int root;
    const char* datatype;
    uint8_t nChannels, nWarps;
    const char *algo, *proto;
    void* parentGroup;
    const char* kernelVariant;
    bool isSymColl;
    uint64_t userTag;
  };
  struct P2pPart {
    const char* func;
    void* buff;
    const char* datatype;
    size_t count;
    int peer;
    uint8_t nChannels;
    void* parentGroup;
    uint64_t userTag;
  };
  struct CeCollPart {
    uint64_t seqNumber;
    const char* func;
    const void* sendBuff;
    void* recvBuff;
    size_t count;
    int root;
    const char *datatype, *syncStrategy;
    bool intraBatchSync;
    uint32_t batchSize, numBatches, ceSeqNum;
    void* stream;
    uint64_t userTag;
  };
  struct KernelPhasePart {
    uint8_t channelId, phaseId;
    const char* phaseName;
    uint64_t pTimer;
  };
  union {
    GroupApiPart groupApi;
    CollApiPart collApi;
    P2pApiPart p2pApi;
    KernelLaunchPart kernelLaunch;
    CollPart coll;
    P2pPart p2p;
    ProxyOpPart proxyOp;
    ProxyStepPart proxyStep;
    KernelChPart kernelCh;
    NetPluginPart netPlugin;
    CeCollPart ceColl;
    CeSyncPart ceCollSync;
    CeBatchPart ceCollBatch;
    KernelPhasePart kernelPhase;
  };
};

union ArgsV1 {  // to v3
  struct {
    size_t transSize;
    int steps;
  } proxyOp;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
};
union ArgsV4 {  // to v7
  struct {
    size_t transSize;
  } proxyStep;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
  struct {
    void* data;
  } netPlugin;
  struct {
    uint64_t pTimer;
  } kernelCh;
};

using InitV1 = Result (*)(void** context, int* eActivationMask);
using InitV4 = Result (*)(void** context, int* eActivationMask, const char* commName, uint64_t commHash, int nNodes,
                          int nranks, int rank, Logger logfn);
using InitV5 = Result (*)(void** context, uint64_t commId, int* eActivationMask, const char* commName, int nNodes,
                          int nranks, int rank, Logger logfn);

template <typename Init, typename Descr, typename Args>
struct Profiler {
  const char* name;
  Init init;
  Result (*startEvent)(void* context, void** eHandle, Descr* eDescr);
  Result (*stopEvent)(void* eHandle);
  Result (*recordEventState)(void* eHandle, int eState, Args* eStateArgs);
  Result (*finalize)(void* context);
};

}  // namespace tacet::nccl
