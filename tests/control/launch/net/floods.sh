#!/usr/bin/env bash
# A stranger floods the port at which two nodes meet with HTTP/2: calls that are reset at once, headers without end, calls
# that stay, messages that do not end; from a host of its own and from a node's own address. Where a secret guards the job, it
# goes on, node 0's launcher stays below 128 MB, and nobody says that it is lost. With --insecure the job may end, with a line.
# Usage: floods.sh FLEETRUN FLOOD [ROUNDS]
set -euo pipefail
fleetrun=$1 flood=$2 rounds=${3:-1}
source "$(dirname "$0")/two_nodes.sh"
new_host x
cable "$a" outside 10.78.0.1/24 "$x" cable 10.78.0.3/24
ip -n "$x" route add 10.77.0.0/24 via 10.78.0.1
export FLEET_JOB_SECRET=correct-horse-battery-staple-4711 CUDA_VISIBLE_DEVICES='' HOME=$folder

node() {  # node NAMESPACE NAME OPTIONS...
  local namespace=$1 name=$2
  shift 2
  exec ip netns exec "$namespace" "$fleetrun" --ips="10.77.0.1, 10.77.0.2" --log_dir="log.$name" --log_level=DEBUG "$@" \
    sh -c 'echo up >"ready.$RANK"; while [ ! -e go ]; do sleep 0.05; done' >"$name.out" 2>&1
}
most_kb() { awk '/^VmHWM/ { print $2 }' "/proc/$1/status"; }
alive() { kill -0 "$first" && kill -0 "$second"; } 2>/dev/null

# flood NAMESPACE KIND CONNECTIONS AMOUNT
flood() { timeout 100 ip netns exec "$1" "$flood" 10.77.0.1:6768 "$2" "$3" "$4" || fail "the flood failed"; }
memory_at_most() {  # memory_at_most KB WHILE
  local memory
  memory=$(most_kb "$first")
  echo "  node 0's launcher: at most $memory kB"
  [ "${memory:-0}" -le "$1" ] || fail "$memory kB under $2"
}
start() {  # start OPTION: a job of two nodes
  rm -rf ready.* go log.*
  node "$a" a "$1" & first=$!
  node "$b" b "$1" & second=$!
  await ready.0 up
  await ready.1 up
}

# By default a secret guards the job: it goes on.
guarded() {
  start --allow_skew  # as it is by default
  local from
  for from in "$x" "$b"; do
    for kind in "resets 4 100000" "headers 4 320" "streams 300 1000" "messages 20 8"; do
      # shellcheck disable=SC2086
      flood "$from" $kind
      alive || fail "the job ended under $kind"
      memory_at_most 131072 "$kind"
    done
  done
  : >go
  wait "$first" || fail "node 0 ended with $?"
  wait "$second" || fail "node 1 ended with $?"
  expect log.a/verdict.json success
  grep -h "longest silence" a.out b.out
  grep -q "lost" a.out b.out && fail "somebody was lost"
  return 0
}

# With --insecure it goes on, or ends with a line and does not fill the machine's memory.
open_to_everyone() {
  local kind
  for kind in "resets 4 100000" "headers 4 320" "streams 300 1000" "messages 20 8"; do
    start --insecure
    # shellcheck disable=SC2086
    flood "$x" $kind
    : >go
    alive && memory_at_most 2097152 "$kind"
    wait "$first" && echo "  $kind: the job went on" && wait "$second" && continue
    wait "$second" || true
    grep -hE "is flooded|was lost" a.out || fail "the job ended without a line under $kind"
  done
}

for ((round = 0; round < rounds; ++round)); do
  echo "round $round:"
  guarded
  open_to_everyone
done
