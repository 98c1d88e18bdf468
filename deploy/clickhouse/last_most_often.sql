-- SPDX-License-Identifier: Apache-2.0
-- Which node came last to collectives most often, over the week. Clocks of hosts differ, so durations are compared: who
-- comes last waits least. Only collectives of which at least two nodes are stored, and whose members' durations differ
-- by more than 100 us and a tenth, say anything; all others are counted in nobody's favour.
SELECT
    last_host,
    count() AS times_last,
    round(avg(spread_ns) / 1e6, 3) AS mean_wait_of_others_ms,
    round(sum(spread_ns) / 1e9, 1) AS wait_of_others_s
FROM
(
    SELECT
        job,
        comm,
        seq,
        argMin(host, duration_ns) AS last_host,
        max(duration_ns) - min(duration_ns) AS spread_ns
    FROM tacet.operations
    WHERE time >= now() - 7 * 86400 AND operation NOT IN ('send', 'recv', 'unknown')
    GROUP BY job, comm, operation, seq
    HAVING uniqExact(host) > 1 AND spread_ns > 100000 AND spread_ns * 10 > max(duration_ns)
)
GROUP BY last_host
ORDER BY times_last DESC
LIMIT 20;
