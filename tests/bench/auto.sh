#!/usr/bin/env bash
# What strategy.auto=true chooses, against a grid of settings fixed beforehand: four link shapes x three nets. Needs root.
#
#   scripts/bench.sh auto [SHAPE [NET]]
#
# SHAPE: two ranks on one host, over shm (shared memory) or tcp (loopback), or a rank on each of two hosts with a link between them: fast
# (1 Gbit/s), slow (200 Mbit/s). NET: resnet20, mlp, googlenet (which is in no configuration of this repository). The grid has 48
# points: fuse_grad_size_in_MB 1 2 4 8 16 32 64 1024 x nccl_comm_num 1 2 4 x last_comm_group_size_MB unset and 0.25. Points whose Plan
# is the same text are the same job and run once. When all are there, auto, the default and the best point run in turns, 3 times. A run
# counts by its median step, and the fastest of the 3 runs is compared: auto should be within 10 % of the best, and not below the
# default by more than 5 %. If auto chooses the default, they are one job, and the fastest of its 6 runs counts. The line says how much runs of one job differ.
#
# The whole takes half an hour. In parts: AUTO_SECONDS=220 ends before a run that would begin later than that, with exit code 3, and
# AUTO_RESULTS=FOLDER keeps the results, where the next part finds them.
# Builds: fleetrun fleet-worker
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${FLEET_BIN:-$root/build/release/bin}
results=$(readlink -m "${AUTO_RESULTS:-$(mktemp -d)}")
limit=${AUTO_SECONDS:-1000000}
source "$root/tests/hosts.sh"
command -v tc >/dev/null || skip "tc (iproute2) is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"
mkdir -p "$results"
shapes=(shm tcp fast slow) nets=(resnet20 mlp googlenet)
[ -z "${1:-}" ] || shapes=("$1")
[ -z "${2:-}" ] || nets=("$2")
new_host a b
cable "$a" eth0 10.79.0.1/24 "$b" eth0 10.79.0.2/24

discipline() {  # discipline WORDS...: of tc, for each direction of the link
  local host
  for host in "$a" "$b"; do
    ip netns exec "$host" tc qdisc del dev eth0 root 2>/dev/null || true
    ip netns exec "$host" tc qdisc add dev eth0 root "$@" 2>/dev/null || skip "this kernel has no $1"
  done
}
set_link() {
  case $1 in
    shm | tcp) ;;
    fast) discipline tbf rate 1gbit burst 125000 latency 200ms ;;
    slow) discipline tbf rate 200mbit burst 25000 latency 200ms ;;
    *) fail "unknown shape $1" ;;
  esac
}
write_job() {  # write_job NET FILE
  local model batch image
  case $1 in
    resnet20) model='"name": "resnet20", "num_classes": 10' batch=16 image='"channels": 3, "height": 32, "width": 32' ;;
    mlp) model='"name": "mlp", "num_classes": 64, "hidden": [1024, 1024, 1024]' batch=64 image='"channels": 1, "height": 28, "width": 28' ;;
    googlenet) model='"name": "googlenet", "num_classes": 40' batch=4 image='"channels": 3, "height": 64, "width": 64' ;;
    *) fail "unknown net $1" ;;
  esac
  cat >"$2" <<JOB
{"model": {$model}, "data": {"source": "synthetic", "batch_size": $batch, "image": {$image}, "train": {"samples": 100000}},
 "optimizer": {"name": "momentum", "momentum": 0.9}, "learning_rate": {"name": "constant", "base": 0.001},
 "train": {"epochs": 1, "fetch_every": 2, "evaluate_every": 0}, "checkpoint": {"at_end": false}}
JOB
}
in_time() { [ "$SECONDS" -lt "$limit" ] || { echo "auto: more is to be done: run it again with AUTO_RESULTS=$results"; exit 3; }; }
# train SHAPE OUTPUT JOB KEY=VALUE...: the median step in seconds
train() {
  local shape=$1 output=$2 job=$3 sets=() text pids=() host
  shift 3
  for text in train.max_steps="${STEPS:-14}" train.output="$output" "$@"; do sets+=(--set "$text"); done
  rm -rf "$output"
  if [ "$shape" = shm ] || [ "$shape" = tcp ]; then
    [ "$shape" = shm ] || sets+=(--set comm.backend=gloo)
    env CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 "$bin/fleetrun" --nproc_per_node=2 --log_dir="$output.log" "$job" "${sets[@]}" \
      >"$output.out" 2>&1 || fail "a job ended with $?: $output.out"
  else
    for host in a b; do
      ip netns exec "${!host}" env CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 "$bin/fleetrun" --insecure \
        --ips=10.79.0.1,10.79.0.2 --nproc_per_node=1 --log_dir="$output.log.$host" --rdzv_timeout=60 "$job" "${sets[@]}" \
        >"$output.$host.out" 2>&1 &
      pids+=($!)
    done
    wait "${pids[0]}" || fail "the first host ended with $?: $output.a.out"
    wait "${pids[1]}" || fail "the second host ended with $?: $output.b.out"
  fi
  python3 - "$output/metrics.jsonl" <<'PYTHON'
import json, statistics, sys
train = [line for line in map(json.loads, open(sys.argv[1])) if line["event"] == "train"]
print(statistics.median((b["time"] - a["time"]) / (b["step"] - a["step"]) for a, b in zip(train[1:], train[2:])))
PYTHON
}
point() {  # point INDEX: settings of the grid
  local sizes=(1 2 4 8 16 32 64 1024) numbers=(1 2 4) index=$1
  echo "strategy.fuse_grad_size_in_MB=${sizes[index % 8]}"
  echo "strategy.fuse_grad_size_in_TFLOPS=1000"
  echo "strategy.nccl_comm_num=${numbers[index / 8 % 3]}"
  [ $((index / 8 % 3)) -eq 0 ] || echo "strategy.sync_nccl_allreduce=false"
  [ $((index / 24)) -eq 0 ] || echo "strategy.last_comm_group_size_MB=0.25"
}
# plans NET: "INDEX HASH" of each point goes to $results/NET.plans; points of one hash are one job
plans() {
  local index text sets settings
  [ -s "$results/$1.plans" ] && return
  for ((index = 0; index < 48; ++index)); do
    sets=()
    mapfile -t settings < <(point "$index")
    for text in "${settings[@]}"; do sets+=(--set "$text"); done
    echo "$index $("$bin/fleet-worker" --device=cpu --ranks=2 --print_plan "${sets[@]}" "$results/$1.json" 2>/dev/null | md5sum | cut -c1-12)"
  done >"$results/$1.plans.part"
  mv "$results/$1.plans.part" "$results/$1.plans"
}
once_more() {  # once_more SHAPE BASE WHAT KEY=VALUE...: a run whose median is added to BASE.WHAT.seconds
  local shape=$1 base=$2 what=$3 took
  shift 3
  in_time
  took=$(train "$shape" "$base.$what" "${base%/*}/${base##*.}.json" "$@") || { echo "$took"; exit 1; }
  echo "$took" >>"$base.$what.seconds"
}
runs() { if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi; }

missed=0
for shape in "${shapes[@]}"; do
  set_link "$shape"
  for net in "${nets[@]}"; do
    base=$results/$shape.$net
    write_job "$net" "$results/$net.json"
    in_time
    plans "$net"
    while read -r index hash; do
      [ -s "$base.$hash.seconds" ] && continue
      mapfile -t settings < <(point "$index")
      once_more "$shape" "$base" "$hash" "${settings[@]}"
    done <"$results/$net.plans"
    best=$(while read -r index hash; do echo "$(head -n 1 "$base.$hash.seconds") $index $hash"; done <"$results/$net.plans" | sort -g | head -n 1)
    read -r _ index hash <<<"$best"
    mapfile -t settings < <(point "$index")
    for round in 1 2 3; do
      # In turns. The best is measured again too: the best of many was also lucky.
      [ "$(runs "$base.auto.seconds")" -ge $round ] || once_more "$shape" "$base" auto strategy.auto=true
      [ "$(runs "$base.best.seconds")" -ge $round ] || once_more "$shape" "$base" best "${settings[@]}"
      [ "$(runs "$base.default.seconds")" -ge $round ] || once_more "$shape" "$base" default
    done
    # Nothing is chosen: auto and the default are the same job, and all their runs count for both.
    same=$(grep -qs "auto: strategy" "$base.auto.out" "$base.auto.a.out" || echo same)
    python3 - "$base" "$same" "$shape $net" "$(printf '%s ' "${settings[@]}")" "$(cut -d' ' -f2 "$results/$net.plans" | sort -u | wc -l)" <<'PYTHON' || missed=1
import sys
base, same, name, settings, distinct = sys.argv[1:]
runs = {what: list(map(float, open(f"{base}.{what}.seconds"))) for what in ("auto", "best", "default")}
if same:
    runs["auto"] = runs["default"] = runs["auto"] + runs["default"]
step = {what: min(values) for what, values in runs.items()}  # whatever else runs only slows a run down
near, gain = step["best"] / step["auto"], step["default"] / step["auto"]
noise = max(max(values) / min(values) for values in runs.values()) - 1
met = near >= 1 / 1.1 and gain >= 0.95
print(f"auto {name}: ratio {near:.3f} to the best of 48 points, {distinct} of them distinct (ours {step['auto'] * 1e3:.1f} ms, best "
      f"{step['best'] * 1e3:.1f} ms: {settings.strip()}), {gain:.3f} to the default ({step['default'] * 1e3:.1f} ms); "
      f"{'it chose the default; ' if same else ''}runs of one job differ by {noise:.0%}: {'met' if met else 'MISSED'}")
sys.exit(not met)
PYTHON
    grep -h "auto: strategy\|auto:.* stays" "$base.auto.out" "$base.auto.a.out" 2>/dev/null | sed 's/^.*auto: /    /' | sort -u || true
  done
done
echo "results are in $results"
exit "$missed"
