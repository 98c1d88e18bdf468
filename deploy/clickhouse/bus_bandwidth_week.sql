-- SPDX-License-Identifier: Apache-2.0
-- This group's bus bandwidth over the week, hour by hour, operation and size class told apart.
-- Replace the group's name; add "AND job = '...'" for one job.
--     clickhouse-client --multiquery < bus_bandwidth_week.sql
SELECT
    toStartOfHour(time) AS hour,
    operation,
    multiIf(bytes <= 4096, '4KiB', bytes <= 65536, '64KiB', bytes <= 1048576, '1MiB', bytes <= 16777216, '16MiB', bytes <= 268435456, '256MiB', 'larger') AS size,
    count() AS operations,
    round(avg(bus_bytes_per_second) / 1e9, 3) AS mean_gb_per_second,
    round(quantile(0.05)(bus_bytes_per_second) / 1e9, 3) AS worst_20th,
    round(quantile(0.5)(bus_bytes_per_second) / 1e9, 3) AS median
FROM tacet.operations
WHERE `group` = 'default_pg' AND time >= now() - 7 * 86400 AND bus_bytes_per_second > 0
GROUP BY hour, operation, size
ORDER BY operation, size, hour;
