#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# live_healthy.sh BUILD_DIR [MINUTES] [RANKS]: a healthy job of the stand-in that rests now and then (all ranks alike, from one
# second to half a minute), under an agent and a server. Every second the verdict must be "healthy"; anything else is printed
# and makes the exit code 1.
set -euo pipefail
build=$(cd "$1" && pwd) minutes=${2:-30} ranks=${3:-16}
work=$(mktemp -d)
pids=()
cleanup() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$work"; }
trap cleanup EXIT
port_of() { for _ in $(seq 100); do grep -o '[0-9]*$' "$1" | head -1 | grep . && return; sleep 0.1; done; }

"$build/tacet" agent --boxes "$work/boxes" --listen 0 --ras off > "$work/agent" & pids+=($!)
agent=$(port_of "$work/agent")
"$build/tacet" serve --agents "127.0.0.1:$agent" --listen 0 > "$work/serve" & pids+=($!)
serve=$(port_of "$work/serve")
end=$((SECONDS + minutes * 60)) wrong=0 asked=0 round=0
rests=(1000 6000 12000 30000)
while [ $SECONDS -lt $end ]; do
  TACET_BOX_DIR="$work/boxes" TACET_JOB="healthy$round" TACET_BOX_MB=1 "$build/tests/plugin/plugin_host" \
    --plugin "$build/libnccl-profiler-tacet.so" --ranks "$ranks" --network --pause-us 10000 --steps 4000 --seconds 120 \
    --rest-every 500 --rest-ms "${rests[$((round % 4))]}" > "$work/job" & job=$!
  pids+=("$job")
  while kill -0 "$job" 2>/dev/null && [ $SECONDS -lt $end ]; do
    sleep 1
    asked=$((asked + 1))
    verdict=$(curl -s -m 10 "http://127.0.0.1:$serve/api/v1/verdict" | grep -o '"verdict":{"status":"[a-z]*"[^}]*' || true)
    case "$verdict" in
      *'"status":"healthy"'*) ;;
      *) wrong=$((wrong + 1)); echo "after $SECONDS s: ${verdict:-no answer}" ;;
    esac
  done
  kill "$job" 2>/dev/null || true
  round=$((round + 1))
done
echo "$asked verdicts in $minutes minutes with $ranks ranks, $round jobs: $wrong not healthy"
[ "$wrong" -eq 0 ]
