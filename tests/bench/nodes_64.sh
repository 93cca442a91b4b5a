#!/usr/bin/env bash
# 64 nodes of 2 ranks of /bin/true on this machine, one fleetrun each on a loopback address of its own, with --insecure and with
# mutual TLS: from the start of the first to the end of the last, against 64 jobs of one node at the same time, which do not
# meet. Medians over interleaved runs; ratio: ours / theirs.
#
#   tests/bench/nodes_64.sh [RUNS [NODES]]     default 9 and 64
# Ends with 1 where 64 nodes take more than 0.8 s: the machine is to be quiet.
# Builds: fleetrun
set -euo pipefail
runs=${1:-9} nodes=${2:-64}
asked_ms=800
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fleetrun=${FLEETRUN:-$root/build/release/bin/fleetrun}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export CUDA_VISIBLE_DEVICES=''
ips=$(seq -s, -f 127.0.1.%g "$nodes")

meet() { "$fleetrun" --ips="$ips" --host="127.0.1.$1" --nproc_per_node=2 --log_dir="log.$1" "${@:2}" /bin/true; }
plain() { meet "$1" --insecure; }
tls() { FLEET_JOB_SECRET=a-secret-of-the-benchmark meet "$1"; }
alone() { "$fleetrun" --nproc_per_node=2 --log_dir="log.$1" /bin/true; }

for ((run = 0; run < runs; ++run)); do
  for way in plain tls alone; do
    start=${EPOCHREALTIME/[.,]/} pids=()
    for ((node = 1; node <= nodes; ++node)); do
      "$way" "$node" >"$node.out" 2>&1 & pids+=($!)
    done
    for pid in "${pids[@]}"; do
      wait "$pid" || { tail -n 3 ./*.out; echo "nodes_$nodes: a node failed"; exit 1; }
    done
    echo $((${EPOCHREALTIME/[.,]/} - start)) >>"$way.us"
  done
done

median() { sort -n "$1.us" | awk '{ v[NR] = $1 } END { printf "%.0f", v[int((NR + 1) / 2)] / 1000 }'; }
least() { sort -n "$1.us" | awk 'NR == 1 { printf "%.0f", $1 / 1000 }'; }
echo "least: plain $(least plain) ms, TLS $(least tls) ms, alone $(least alone) ms of $runs"
missed=0
for way in plain tls; do
  awk -v ours="$(median "$way")" -v theirs="$(median alone)" -v asked="$asked_ms" -v nodes="$nodes" -v way="$way" 'BEGIN {
    met = nodes != 64 || ours <= asked
    printf "nodes_%d_%s: ratio %.2f (ours %d ms, as many jobs of one node %d ms; asked for <= %d ms: %s)\n", nodes, way, ours / theirs, ours, theirs, asked, (met ? "met" : "MISSED")
    exit !met }' || missed=1
done
exit $missed
