#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# in_shards.sh N PROGRAM ARGUMENTS...: a GoogleTest program as N processes side by side, each with its share of the tests. For
# tests that wait most of their time; what each says is printed when all are done.
set -u
shards=$1
shift
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
i=0
while [ "$i" -lt "$shards" ]; do
  { GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$@" > "$logs/$i" 2>&1; echo $? > "$logs/$i.rc"; } &
  i=$((i + 1))
done
wait
cat "$logs"/[0-9] "$logs"/[0-9][0-9] 2> /dev/null
[ "$(cat "$logs"/*.rc | sort -u)" = 0 ]
