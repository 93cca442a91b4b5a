#!/usr/bin/env bash
# A job file with a parameter server and a trainer on each of two hosts, whose cable is cut in training. Without restarts both nodes end and
# name the other one. With --max_restart the job goes on when the cable is back, to the bits of an undisturbed job.
# Usage: lost_node.sh FLEETRUN
set -euo pipefail
fleetrun=$(realpath "$1")
source "$(dirname "$0")/../hosts.sh"
new_host a b
cable "$a" cable 10.77.0.1/24 "$b" cable 10.77.0.2/24
export FLEET_JOB_SECRET=a-secret-of-this-test-only-0123456789 CUDA_VISIBLE_DEVICES='' OMP_NUM_THREADS=1
cat >job.json <<'EOF'
{"task": "click", "model": {"name": "wide_deep", "dense": false, "dim": 4, "hidden": [16]},
 "data": {"source": "synthetic_clicks", "slot_count": 3, "slot_ids": 100, "ids": 0, "batch_size": 64,
          "train": {"samples": 8192}, "test": {"samples": 1024}},
 "optimizer": {"name": "adagrad"}, "learning_rate": {"base": 0.05},
 "tables": {"embedding": {"rule": {"name": "dense_adagrad", "learning_rate": 0.1}, "initializer": {"low": -0.01, "high": 0.01}}},
 "train": {"epochs": 9, "deterministic": true, "max_steps": 200, "evaluate_every": 0, "tensorboard": false},
 "checkpoint": {"every_steps": 8}}
EOF

node() {  # node NAMESPACE NAME OPTION...: the same line on both
  local namespace=$1 name=$2
  shift 2
  # The first start is slow enough to be cut: one server takes longer for each push (message 3).
  FLEET_FAULT="ps_has 3 1 $folder/armed 20" FLEET_RUNTIME_DIR="$folder/run.$name" \
    exec ip netns exec "$namespace" "$fleetrun" --servers=10.77.0.1:6170,10.77.0.2:6170 --workers=10.77.0.1,10.77.0.2 \
    --heartbeat_timeout=3 --grace=2 --rdzv_timeout=60 --log_dir="log.$name" "$@" >"$name.out" 2>&1
}
start() {  # start OUTPUT OPTION...: both nodes; returns when they have a checkpoint
  local output=$1
  shift
  : >armed
  (node "$a" a "$@" job.json --set train.output="$output") & first=$!
  (node "$b" b "$@" job.json --set train.output="$output") & second=$!
  await_file "$output/checkpoints/step_00000008/state.json"
}
nothing_left() { [ -z "$(ip netns pids "$a")$(ip netns pids "$b")" ]; }

start ended
ip -n "$a" link set cable down
code=0; wait $first || code=$?
[ $code = 113 ] || fail "node 0 ended with $code instead of 113"
code=0; wait $second || code=$?
[ $code = 113 ] || fail "node 1 ended with $code instead of 113"
expect log.a/verdict.json '"verdict": "node lost"'
expect log.a/verdict.json '"address": "10.77.0.2"'
expect b.out 10.77.0.1
soon "processes are left" nothing_left
echo "without restarts both nodes ended"

ip -n "$a" link set cable up
start again --max_restart=1 --elastic_timeout=120
ip -n "$a" link set cable down
await a.out "10.77.0.2.* was lost"
ip -n "$a" link set cable up
wait $first || fail "node 0 ended with $?"
wait $second || fail "node 1 ended with $?"
expect a.out "restart 1 of 1"
expect log.a/workerlog.0 "resumed from again/checkpoints/step_"
soon "processes are left" nothing_left
ip netns exec "$a" "$fleetrun" --server_num=2 --worker_num=2 --log_dir=log.whole job.json --set train.output=whole >whole.out 2>&1 ||
  fail "the undisturbed job ended with $?"
for run in whole again; do
  "$fleetrun" table $run/checkpoints/step_00000200 -o - 2>table.out | sort >$run.rows
done
[ "$(wc -l <whole.rows)" -gt 200 ] || fail "the table is empty"
cmp {whole,again}.rows || fail "the rows of the last checkpoints differ"
cmp {whole,again}/checkpoints/step_00000200/model.safetensors || fail "the weights of the last checkpoints differ"
echo "the job went on from its checkpoint, to the same end"
