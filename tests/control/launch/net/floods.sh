#!/usr/bin/env bash
# A stranger floods the port at which two nodes meet with HTTP/2: calls that are reset at once, headers without end, calls
# that stay, messages that do not end; from a host of its own and from a node's own address; where a secret guards the job
# and with --insecure. The job goes on, node 0's launcher stays below 128 MB, and nobody says that it is lost.
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
alive() { kill -0 "$first" && kill -0 "$second"; }

attack() {  # attack NAMESPACE KIND CONNECTIONS AMOUNT
  local memory
  timeout 100 ip netns exec "$1" "$flood" 10.77.0.1:6768 "$2" "$3" "$4" || fail "the flood failed"
  alive || fail "the job ended under $2"
  memory=$(most_kb "$first")
  echo "  node 0's launcher: at most $memory kB"
  [ "$memory" -le 131072 ] || fail "$memory kB under $2"
}

for ((round = 0; round < rounds; ++round)); do
  for guard in --insecure --allow_skew; do  # --allow_skew: as it is by default
    rm -rf ready.* go log.*
    node "$a" a "$guard" & first=$!
    node "$b" b "$guard" & second=$!
    await ready.0 up
    await ready.1 up
    echo "round $round, $guard:"
    for from in "$x" "$b"; do
      attack "$from" resets 4 100000
      attack "$from" headers 4 320
      attack "$from" streams 300 1000
      attack "$from" messages 20 8
    done
    : >go
    wait "$first" || fail "node 0 ended with $?"
    wait "$second" || fail "node 1 ended with $?"
    expect log.a/verdict.json success
    grep -h "longest silence" a.out b.out
    grep -q "lost" a.out b.out && fail "somebody was lost"
  done
done
echo "the job went on"
