-- SPDX-License-Identifier: Apache-2.0
-- What tacet agent --clickhouse makes if it is not there: one row a finished operation and rank.
CREATE DATABASE IF NOT EXISTS tacet;

CREATE TABLE IF NOT EXISTS tacet.operations
(
    `time` DateTime COMMENT 'when it ended, by the clock of its host',
    `job` LowCardinality(String),
    `host` LowCardinality(String) COMMENT 'the node, as its agent calls it',
    `pid` Int32,
    `rank` Int32 COMMENT 'in the job; -1 unknown',
    `group` LowCardinality(String) COMMENT 'name of the communicator',
    `comm` String COMMENT 'identity of the communicator',
    `group_rank` Int32 COMMENT 'in the communicator; -1 unknown',
    `group_size` Int32 COMMENT '-1 unknown',
    `operation` LowCardinality(String) COMMENT 'all_reduce, send, ...',
    `seq` UInt64 COMMENT 'number among the collectives, or the sends and receives, of the communicator',
    `serial` UInt64 COMMENT 'number among all operations of the process',
    `algorithm` LowCardinality(String),
    `protocol` LowCardinality(String),
    `bytes` Int64 COMMENT 'of the whole operation; -1 unknown',
    `issue_wall_ns` Int64 COMMENT 'when the host called NCCL, by its clock; 0 unknown',
    `duration_ns` Int64 COMMENT 'on the GPU, or as the host saw it: waiting for the last member included',
    `in_flight_ns` Int64 COMMENT 'from the call to the end; -1 unknown',
    `bus_bytes_per_second` Float64 COMMENT 'as nccl-tests define it; 0 where there is none',
    `wait_own_gpu_ns` Int64 COMMENT 'of its network steps, summed',
    `wait_peer_credit_ns` Int64,
    `wait_network_ns` Int64,
    `wait_data_ns` Int64
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(time)
ORDER BY (job, `group`, operation, time, host, pid, serial)
TTL time + INTERVAL 90 DAY;
