#!/usr/bin/env bash
# Runs a test program in shards at the same time, each in a network namespace of its own, so that no test meets the ports of
# another. Where this system allows no such namespace, all tests run one after the other.
#
#   tests/in_shards.sh COUNT PROGRAM [ARGUMENT...]
# The output of a shard follows when all have ended. The exit code is 0 if all tests passed.
set -euo pipefail

shards=$1
shift
# A shell starts what runs in the background with SIGINT and SIGQUIT ignored.
isolated=(env --default-signal=INT --default-signal=QUIT unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
"${isolated[@]}" true 2>/dev/null || exec "$@"

output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
pids=()
for ((i = 0; i < shards; ++i)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "${isolated[@]}" "$@" >"$output/$i" 2>&1 &
  pids+=($!)
done
status=0
for ((i = 0; i < shards; ++i)); do
  wait "${pids[i]}" || status=$?
  cat "$output/$i"
done
exit "$status"
