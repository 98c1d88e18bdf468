-- SPDX-License-Identifier: Apache-2.0
-- Only for servers before 19.6, which have no TTL. Lists a statement for each day older than 90 days; run what it prints:
--     clickhouse-client --query "$(cat drop_old.sql)" | clickhouse-client --multiquery
SELECT DISTINCT concat('ALTER TABLE tacet.operations DROP PARTITION \'', partition, '\';')
FROM system.parts
WHERE database = 'tacet' AND table = 'operations' AND active AND toDate(partition) < today() - 90
FORMAT TabSeparatedRaw
