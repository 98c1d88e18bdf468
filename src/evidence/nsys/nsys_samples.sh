#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the sample exports from SQL, in the schemas that Nsight Systems documents. usage: nsys_samples.sh FOLDER
#   nsys_2025_rank0.sqlite, nsys_2025_rank1.sqlite  a file for each rank, NCCL's ranges with payload; rank 1 computes longer
#   nsys_2022_one_host.sqlite                       two processes in one file, texts in the rows, no payload, a graph
set -euo pipefail
folder=$1
mkdir -p "$folder"

little_endian() { # VALUE BYTES
  local value=$1 out= i
  for ((i = 0; i < $2; ++i)); do out+=$(printf %02x $((value >> (8 * i) & 255))); done
  echo "$out"
}
comm=$(little_endian 0x51a2b3c4d5e6f708 8)
# NVTX payloads: domain, schema, size, end of the payload, then its fields.
payload() { # SCHEMA FIELDS_IN_HEX
  local size=$((${#2} / 2))
  echo "$(little_endian 3 8)$(little_endian $((0x1000000 + $1)) 8)$(little_endian $size 8)$(little_endian $((size + 32)) 8)$2"
}

rank_export() { # RANK COMPUTE_NS
  local rank=$1 compute=$2 file=$folder/nsys_2025_rank$1.sqlite
  local thread=$((0x100000000000000 + (4700 + rank) * 0x1000000)) device=$rank
  local make all_reduce
  make=$(payload 0 "$comm$(little_endian 2 4)$(little_endian "$rank" 4)$(little_endian 0 4)00000000")
  all_reduce=$(payload 5 "$comm$(little_endian 4194304 8)$(little_endian 0 4)00000000")
  rm -f "$file"
  sqlite3 "$file" <<SQL
PRAGMA page_size=1024;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, pwGpuId INTEGER, uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, ctxswDevPath TEXT, ctrlDevPath TEXT, revision INTEGER, nvmDevId INTEGER, nvmArchId INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, numMultiprocessors INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, gridX INTEGER NOT NULL, blockX INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData BLOB);
CREATE TABLE NVTX_PAYLOAD_SCHEMAS (domainId INTEGER, schemaId INTEGER, name TEXT, type INTEGER, flags INTEGER, numEntries INTEGER, payloadSize INTEGER, alignTo INTEGER);
CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER);
INSERT INTO StringIds VALUES (1,'void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(T1::Params)'),(2,'Kernel2'),
 (3,'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)'),(4,'ncclDevKernel_AllReduce_Sum_bf16_RING_LL'),
 (5,'cudaLaunchKernel_v7000'),(6,'cuLaunchKernelEx'),(7,'cudaMemcpyAsync_v3020'),(8,'cudaStreamSynchronize_v3020'),
 (9,'NCCL'),(10,'ncclCommInitRankConfig'),(11,'ncclAllReduce'),(12,'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__'),
 (20,'step 0'),(21,'step 1'),(22,'step 2'),(23,'step 3'),(24,'step 4'),(25,'step 5');
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_NAME','NVIDIA Nsight Systems'),('EXPORT_SCHEMA_VERSION','3.20.1');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1763164800000000000+$rank*1500000,'','');
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1,'Local','Hostname',10,'node01');
INSERT INTO TARGET_INFO_GPU VALUES (1,0,'NVIDIA H100 80GB HBM3','0000:19:00.0',1,52428800,85520809984,3352320000000,1980000000,132,NULL,NULL,NULL,'GH100',0,NULL,NULL,1,NULL,NULL,9,0),
 (1,1,'NVIDIA H100 80GB HBM3','0000:3b:00.0',1,52428800,85520809984,3352320000000,1980000000,132,NULL,NULL,NULL,'GH100',1,NULL,NULL,1,NULL,NULL,9,0);
INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES ($device,0,$((4700 + rank)),NULL,132);
INSERT INTO NVTX_PAYLOAD_SCHEMAS VALUES (3,16777216,NULL,1,0,4,24,NULL),(3,16777221,NULL,1,0,3,24,NULL);
INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (3,16777216,0,0,18,'NCCL communicator ID',NULL,NULL,NULL),(3,16777216,1,0,5,'No. of ranks',NULL,NULL,8),
 (3,16777216,2,0,5,'Rank',NULL,NULL,12),(3,16777216,3,0,5,'CUDA device',NULL,NULL,16),
 (3,16777221,0,0,18,'NCCL communicator ID',NULL,NULL,NULL),(3,16777221,1,0,22,'Message size [bytes]',NULL,NULL,8),(3,16777221,2,0,16777240,'Reduction operation',NULL,NULL,16);
INSERT INTO NVTX_EVENTS (start,end,eventType,globalTid,textId,domainId,binaryData) VALUES (1000,NULL,75,$thread,9,3,NULL),(2000,9000,59,$thread,10,3,x'$make');
-- A step of 20 ms: a batch is waited for and copied, three kernels, and an all-reduce behind each; both ranks end it together.
CREATE TEMP TABLE place AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<17) SELECT i, i/3 AS step, i%3 AS part, 10000000+(i/3)*20000000+(i%3)*6000000 AS t FROM n;
INSERT INTO NVTX_EVENTS (start,end,eventType,globalTid,textId,domainId) SELECT t-300000,t+19600000,59,$thread,20+step,0 FROM place WHERE part=0;
INSERT INTO NVTX_EVENTS (start,end,eventType,globalTid,textId,domainId) SELECT t-250000,t-150000,59,$thread,12,0 FROM place WHERE part=0;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT t-120000,t-110000,0,$thread,9000+i,7,0,NULL FROM place WHERE part=0;
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT t-90000,t-20000,0,1,NULL,7,9000+i,$thread,1048576,1 FROM place WHERE part=0;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT t-40000,t-32000,0,$thread,100+i,5,0,NULL FROM place;
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT t,t+$compute,0,1,NULL,7,100+i,$thread,1,2,1,1,132,256,NULL FROM place;
INSERT INTO NVTX_EVENTS (start,end,eventType,globalTid,textId,domainId,binaryData) SELECT t+20000,t+60000,59,$thread,11,3,x'$all_reduce' FROM place;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT t+40000,t+52000,1,$thread,500+i,6,0,NULL FROM place;
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT t+$compute+10000,t+5900000-$rank*1500000,0,1,NULL,16,500+i,$thread,3,4,3,1,24,544,NULL FROM place;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT t+5000000,t+5950000,0,$thread,700+i,8,0,NULL FROM place WHERE part=2;
VACUUM;
SQL
}

one_host_export() {
  local file=$folder/nsys_2022_one_host.sqlite
  local first=$((0x100000000000000 + 811 * 0x1000000)) second=$((0x100000000000000 + 812 * 0x1000000))
  rm -f "$file"
  sqlite3 "$file" <<SQL
PRAGMA page_size=1024;
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, smCount INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, graphId INTEGER, graphExecId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER);
INSERT INTO StringIds VALUES (1,'void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>(int, FillFunctor<float>)'),(2,'vectorized_elementwise_kernel'),
 (3,'ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm *, unsigned long, ncclWork *)'),(4,'ncclKernel_AllGather_RING_LL_Sum_int8_t'),(5,'cudaLaunchKernel_v7000'),(6,'cudaLaunchKernelExC_v11060'),(7,'cudaGraphLaunch_v10000');
INSERT INTO TARGET_INFO_GPU VALUES (1,0,'NVIDIA A100-SXM4-80GB',85198045184,108),(1,1,'NVIDIA A100-SXM4-80GB',85198045184,108);
CREATE TEMP TABLE place AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<11) SELECT i, 1000000+i*1000000 AS t, p.device, p.thread FROM n, (SELECT 0 AS device, $first AS thread UNION ALL SELECT 1, $second) AS p;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT t,t+9000,0,thread,i*4+1,5,0 FROM place UNION ALL SELECT t+100000,t+110000,0,thread,i*4+2,6,0 FROM place UNION ALL SELECT t+200000,t+230000,0,thread,i*4+3,7,0 FROM place WHERE i%4=0;
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT t+20000,t+300000,device,1,7,i*4+1,thread,1,2 FROM place UNION ALL SELECT t+310000,t+700000,device,1,20,i*4+2,thread,3,4 FROM place;
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE SELECT t+710000,t+800000,device,1,1,1,7,i*4+3,thread FROM place WHERE i%4=0;
INSERT INTO NVTX_EVENTS (start,end,eventType,text,globalTid,domainId) SELECT t+90000,t+120000,59,'ncclAllGather',thread,1 FROM place;
INSERT INTO NVTX_EVENTS (start,end,eventType,text,globalTid,domainId) SELECT t-10000,t+3900000,59,'iteration',thread,0 FROM place WHERE i%4=0;
VACUUM;
SQL
}

rank_export 0 1500000
rank_export 1 3000000
one_host_export
