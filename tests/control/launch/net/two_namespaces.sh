#!/usr/bin/env bash
# Two nodes in two network namespaces, joined by a cable of their own: they meet, and when the cable is pulled the nodes say which one was lost.
# Usage: two_namespaces.sh FLEETRUN HELPER
set -euo pipefail
fleetrun=$1 helper=$2
source "$(dirname "$0")/two_nodes.sh"

node() {  # node NAMESPACE NAME PROGRAM...: the same line on both
  local namespace=$1 name=$2
  shift 2
  CUDA_VISIBLE_DEVICES= exec ip netns exec "$namespace" "$fleetrun" --ips="10.77.0.1, 10.77.0.2" \
    --nproc_per_node=2 --log_dir="log.$name" --rdzv_timeout=60 "$@" >"$name.out" 2>&1
}

(node "$a" a "$helper" store) & first=$!
(node "$b" b "$helper" store) & second=$!
wait $first || fail "node 0 ended with $?"
wait $second || fail "node 1 ended with $?"
expect log.b/workerlog.1 "sum 14"
echo "two namespaces met"

rm -f ./*.out
script=': >ready.$RANK; while :; do sleep 0.05; done'
(node "$a" a sh -c "$script") & first=$!
(node "$b" b sh -c "$script") & second=$!
for rank in 0 1 2 3; do await_file ready.$rank; done
ip -n "$a" link set cable down
code=0; wait $first || code=$?
[ $code = 113 ] || fail "node 0 ended with $code instead of 113"
code=0; wait $second || code=$?
[ $code = 113 ] || fail "node 1 ended with $code instead of 113"
expect a.out "10.77.0.2"
expect b.out "10.77.0.1"
echo "the pulled cable was seen by both"
