#!/usr/bin/env bash
# What strategies gain on slow links: two hosts are network namespaces, the link between them is shaped by tc tbf. Needs root.
#
#   scripts/bench.sh links [NAME...]     all without a name; ROUNDS=5 for other medians than of 3
#
#   gradient_merge   ResNet-18 at 64x64, k = 4 at 200 Mbit/s against each step: bytes, and the step against compute + communication/4
#   localsgd         the same net, k = 4 and adaptive: bytes, and what adaptive chose
#   bytes            an mlp, seconds long, for tests: bytes of gradient_merge, localsgd and fp16_allreduce; times are only shown
#   hierarchical     2 hosts x 4 ranks at 200 Mbit/s: against a flat ring in node order (comm.backend=gloo), 25 MB and 64 KB
#   overlap          ResNet-18 at 224x224 with last_comm_group_size_MB = 1, where communication takes half as long as backward: the
#                    share of it that is hidden, and the step against PyTorch's DDP over Gloo (FLEET_TORCH_PYTHON, or Debian's
#                    python3-torch)
#   fused_gradients  a deep net of gradients of 16 KB at 1 Gbit/s: communication in groups against one message a gradient
#   dgc              VGG-16 at 32x32, sparsity 0.999 at 200 Mbit/s against dense: bytes and the step
#
# Times are medians over steps, and then over runs in turns. Each rank has one core as long as there are enough.
# Builds: fleetrun fleet-worker bench_link_allreduce
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=$(realpath "${FLEET_BIN:-$root/build/release/bin}")
rounds=${ROUNDS:-3}
source "$root/tests/hosts.sh"
command -v tc >/dev/null || skip "tc (iproute2) is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"
new_host a b
cable "$a" eth0 10.79.0.1/24 "$b" eth0 10.79.0.2/24

# shape RATE [MICROSECONDS]: of the link in bit/s, in each direction; what so many microseconds carry may go at once. With less than
# about 1000 the bucket is often empty when the kernel looks, and two directions at once reach only half the rate.
shape() {
  local host burst=$(($1 * ${2:-1000} / 8000000))
  [ "$burst" -ge 10000 ] || burst=10000
  for host in "$a" "$b"; do
    ip netns exec "$host" tc qdisc replace dev eth0 root tbf rate "$1" burst "$burst" latency 200ms 2>/dev/null ||
      skip "this kernel has no token bucket (sch_tbf)"
  done
}
on_both() {  # on_both NAME RANKS_A_HOST ARGUMENTS...: a job on both hosts; what they say goes to NAME.A.out, NAME.B.out
  local name=$1 ranks=$2 pids=() host
  shift 2
  for host in a b; do
    ip netns exec "${!host}" env CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 "$bin/fleetrun" --insecure \
      --ips=10.79.0.1,10.79.0.2 --nproc_per_node="$ranks" --log_dir="log.$name.$host" --rdzv_timeout=60 "$@" >"$name.$host.out" 2>&1 &
    pids+=($!)
  done
  wait "${pids[0]}" || fail "$name: the first host ended with $?"
  wait "${pids[1]}" || fail "$name: the second host ended with $?"
}
# train NAME JOB STEPS KEY=VALUE...: one run; its median step in seconds is appended to NAME.seconds, the bytes that a rank
# sends in the mean step (without the first lines) to NAME.bytes.
train() {
  local name=$1 job=$2 steps=$3 sets=() text
  shift 3
  for text in train.max_steps="$steps" train.output="out.$name" checkpoint.at_end=false "$@"; do sets+=(--set "$text"); done
  rm -rf "out.$name"
  on_both "$name" 1 "$job" "${sets[@]}"
  python3 - "out.$name/metrics.jsonl" "$name" <<'PYTHON'
import json, statistics, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
train = [line for line in lines if line["event"] == "train"]
seconds = [(b["time"] - a["time"]) / (b["step"] - a["step"]) for a, b in zip(train[1:], train[2:])]
open(sys.argv[2] + ".seconds", "a").write(f"{statistics.median(seconds)}\n")
open(sys.argv[2] + ".bytes", "a").write(f"{statistics.mean(line['sent_bytes'] for line in train[2:])}\n")
PYTHON
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
calculate() { awk "BEGIN { printf \"%.9g\", $1 }"; }
missed=0
report() {  # report NAME RATIO AT_LEAST TEXT
  local verdict=met
  awk "BEGIN { exit !($2 >= $3) }" || { verdict=MISSED; missed=1; }
  printf '%s: ratio %.3f (%s; asked for >= %s: %s)\n' "$1" "$2" "$4" "$3" "$verdict"
}

resnet18() {  # resnet18 BATCH SIZE: a job file, for images of SIZE x SIZE
  cat >resnet18.json <<JOB
{"model": {"name": "resnet18", "num_classes": 100},
 "data": {"source": "synthetic", "batch_size": $1, "image": {"channels": 3, "height": $2, "width": $2}, "train": {"samples": 100000}},
 "optimizer": {"name": "momentum", "momentum": 0.9},
 "learning_rate": {"name": "constant", "base": 0.01},
 "train": {"epochs": 1, "fetch_every": 4, "evaluate_every": 0}}
JOB
}
# Ranks that never meet after the first step: what a step takes without communication.
apart=(strategy.localsgd=true strategy.localsgd_configs.k_steps=1000000)

bench_gradient_merge() {
  local round k4=(strategy.gradient_merge=true strategy.gradient_merge_configs.k_steps=4)
  resnet18 32 64
  shape 200000000
  for ((round = 0; round < rounds; ++round)); do
    train gm_each resnet18.json 24
    train gm_merged resnet18.json 40 "${k4[@]}"
    train gm_apart resnet18.json 24 "${apart[@]}"
  done
  local each merged compute communication bound
  each=$(median gm_each.bytes) merged=$(median gm_merged.bytes)
  compute=$(median gm_apart.seconds)
  communication=$(calculate "$each * 8 / 200e6")
  bound=$(calculate "$compute + $communication / 4")
  echo "gradient_merge: each step $(median gm_each.seconds) s, computes $compute s, sends $each bytes in $communication s at 200 Mbit/s"
  report gradient_merge_bytes "$(calculate "$each / $merged")" 3.98 "ours $merged bytes a step, each step $each bytes"
  report gradient_merge "$(calculate "$bound / $(median gm_merged.seconds)")" 0.909 \
    "ours $(median gm_merged.seconds) s, compute + communication/4 $bound s"
}

bench_localsgd() {
  resnet18 32 64
  shape 200000000
  train local_each resnet18.json 16
  train local_k4 resnet18.json 24 strategy.localsgd=true strategy.localsgd_configs.k_steps=4
  local each k4
  each=$(median local_each.bytes) k4=$(median local_k4.bytes)
  echo "localsgd: each step $(median local_each.seconds) s, k = 4 $(median local_k4.seconds) s"
  report localsgd_bytes "$(calculate "$each / $k4")" 3.98 "ours $k4 bytes a step, each step $each bytes"
  train local_adaptive resnet18.json 48 strategy.adaptive_localsgd=true strategy.adaptive_localsgd_configs.init_k_steps=4
  # A line is of the steps since the one before: 4, of which ones of k steps have a k-th part of all bytes.
  local chosen allowed
  read -r chosen allowed <<<"$(python3 - out.local_adaptive/metrics.jsonl "$each" <<'PYTHON'
import json, sys
train = [line for line in map(json.loads, open(sys.argv[1])) if line["event"] == "train"][2:]
chosen = [int(line["local_steps"]) for line in train]
print(",".join(map(str, chosen)), sum(float(sys.argv[2]) / k for k in chosen) / len(chosen))
PYTHON
)"
  echo "adaptive_localsgd: a step $(median local_adaptive.seconds) s; averages every $chosen steps"
  report adaptive_localsgd_bytes "$(calculate "$allowed / $(median local_adaptive.bytes)")" 0.98 \
    "ours $(median local_adaptive.bytes) bytes a step, of the steps it chose $allowed bytes"
}

bench_bytes() {
  local name each
  cat >mlp.json <<JOB
{"model": {"name": "mlp", "num_classes": 128, "hidden": [1024]},
 "data": {"source": "synthetic", "batch_size": 4, "image": {"channels": 1, "height": 16, "width": 16}, "train": {"samples": 100000}},
 "optimizer": {"name": "momentum", "momentum": 0.9},
 "learning_rate": {"name": "constant", "base": 0.001},
 "train": {"epochs": 1, "fetch_every": 4, "evaluate_every": 0}}
JOB
  shape 100000000
  train each mlp.json 24
  train gradient_merge mlp.json 24 strategy.gradient_merge=true strategy.gradient_merge_configs.k_steps=4
  train localsgd mlp.json 24 strategy.localsgd=true strategy.localsgd_configs.k_steps=4
  train fp16_allreduce mlp.json 24 strategy.fp16_allreduce=true
  each=$(median each.bytes)
  for name in gradient_merge:4 localsgd:4 fp16_allreduce:2; do
    local asked=${name#*:}
    name=${name%:*}
    report "$name" "$(calculate "$each / $(median "$name.bytes")")" "$(calculate "$asked * 0.995")" \
      "ours $(median "$name.bytes") bytes and $(median "$name.seconds") s a step, each step $each bytes and $(median each.seconds) s"
  done
}

all_reduce() {  # all_reduce NAME RANKS_A_HOST OPTIONS...: the median is appended to NAME.ms
  local name=$1 ranks=$2
  shift 2
  on_both "$name" "$ranks" "$bin/bench_link_allreduce" "$@"
  grep -h '^median' "$name".a.out log."$name".a/workerlog.0 2>/dev/null | head -n 1 | tee -a "$name.lines" | sed 's/^median \([0-9.]*\) ms.*/\1/' >>"$name.ms"
}

bench_hierarchical() {
  local round bytes label asked burst
  # A bucket of 1 ms would let most of 64 KB through at once.
  for label in 25MB:26214400:1.4:1000 64KB:65536:3:400; do
    IFS=: read -r label bytes asked burst <<<"$label"
    shape 200000000 "$burst"
    for ((round = 0; round < rounds; ++round)); do
      all_reduce "flat_$label" 4 --backend=gloo --bytes="$bytes" --rounds=$((bytes > 1000000 ? 5 : 51))
      all_reduce "hierarchical_$label" 4 --backend=hierarchical --bytes="$bytes" --rounds=$((bytes > 1000000 ? 5 : 51))
    done
    report "hierarchical_$label" "$(calculate "$(median "flat_$label.ms") / $(median "hierarchical_$label.ms")")" "$asked" \
      "ours $(median "hierarchical_$label.ms") ms, flat ring $(median "flat_$label.ms") ms"
  done
}

# The last group of gradients is ready when backward ends, so that nothing hides it: it is to be small.
small_end=(strategy.last_comm_group_size_MB=1)

bench_overlap() {
  local name round rate compute each free=100000000000 batch=16 size=224  # much to compute for each byte, or copying takes the cores
  resnet18 "$batch" "$size"
  # The link's rate follows from a step without communication, of which backward is about two thirds.
  shape "$free"
  train overlap_apart resnet18.json 12 train.fetch_every=2 "${apart[@]}"
  train overlap_bytes resnet18.json 6 train.fetch_every=2
  compute=$(median overlap_apart.seconds) each=$(median overlap_bytes.bytes)
  rate=$(calculate "int($each * 8 / ($compute * 2 / 3 / 2))")
  echo "overlap: a step of ranks that never meet takes $compute s; a step sends $each bytes: link of $rate bit/s"
  local python=${FLEET_TORCH_PYTHON:-/usr/bin/python3} peer=1
  "$python" -c 'import torch' 2>/dev/null || { peer=0; echo "overlap: PyTorch SKIPPED: not in $python (FLEET_TORCH_PYTHON)"; }
  # Against the same job on a link that takes no time: there too ranks wait for the slower one. Cores of a shared machine change
  # their speed within minutes: short runs, and the share of each round by itself.
  for ((round = 0; round < rounds; ++round)); do
    rm -f overlap_{ours,free,ddp}.seconds overlap_alone.ms
    shape "$free"
    train overlap_free resnet18.json 12 train.fetch_every=1 "${small_end[@]}"
    shape "$rate"
    train overlap_ours resnet18.json 12 train.fetch_every=1 "${small_end[@]}"
    all_reduce overlap_alone 1 --backend=gloo --bytes="$(calculate "int($each)")" --rounds=3 >/dev/null
    [ "$peer" = 0 ] || {
      on_both overlap_ddp 1 "$python" "$root/tests/bench/peers/ddp_resnet18.py" "--batch=$batch" "--size=$size" --steps=8
      cat overlap_ddp.a.out log.overlap_ddp.a/workerlog.0 2>/dev/null | sed -n 's/^median: \([0-9.]*\) s.*/\1/p' | head -n 1 >overlap_ddp.seconds
      calculate "$(<overlap_ddp.seconds) / $(<overlap_ours.seconds)" >>overlap.rounds
      echo >>overlap.rounds
    }
    calculate "1 - 1000 * ($(<overlap_ours.seconds) - $(<overlap_free.seconds)) / $(<overlap_alone.ms)" >>hidden.rounds
    echo >>hidden.rounds
    for name in ours.seconds free.seconds ddp.seconds alone.ms; do cat "overlap_$name" >>"all.$name" 2>/dev/null || true; done
  done
  report overlap_hidden "$(median hidden.rounds)" 0.8 \
    "ours $(median all.ours.seconds) s a step, $(median all.free.seconds) s where the link takes no time; alone $(median all.alone.ms) ms"
  [ "$peer" = 0 ] || report overlap "$(median overlap.rounds)" 1 \
    "ours $(median all.ours.seconds) s, PyTorch DDP over Gloo $(median all.ddp.seconds) s"
}

bench_fused_gradients() {
  local round hidden
  hidden=$(printf '64,%.0s' {1..100})
  cat >deep.json <<JOB
{"model": {"name": "mlp", "num_classes": 10, "hidden": [${hidden%,}]},
 "data": {"source": "synthetic", "batch_size": 8, "image": {"channels": 1, "height": 8, "width": 8}, "train": {"samples": 100000}},
 "optimizer": {"name": "momentum", "momentum": 0.9},
 "learning_rate": {"name": "constant", "base": 0.01},
 "train": {"epochs": 1, "fetch_every": 8, "evaluate_every": 0}}
JOB
  shape 1000000000
  for ((round = 0; round < rounds; ++round)); do
    train fused deep.json 160
    train unfused deep.json 160 strategy.fuse_all_reduce_ops=false
    train fused_apart deep.json 160 "${apart[@]}"
  done
  local compute fused unfused
  compute=$(median fused_apart.seconds)
  fused=$(calculate "$(median fused.seconds) - $compute") unfused=$(calculate "$(median unfused.seconds) - $compute")
  echo "fused_gradients: a step takes $compute s without communication, $(median fused.seconds) s fused, $(median unfused.seconds) s not"
  report fused_gradients "$(calculate "$unfused / $fused")" 1.5 "ours $fused s of communication, a message a gradient $unfused s"
}

# vgg16_counts WIDTH: how many elements a rank sends of the weights with 16384 and more, one in a thousand of each, and the
# bytes of what is dense.
vgg16_counts() {
  python3 - "$1" <<'PYTHON'
import sys
width, channels, weights, others = int(sys.argv[1]), 3, [], 0
for out in [64] * 2 + [128] * 2 + [256] * 3 + [512] * 6:
    weights.append(out * channels * 9)
    others += out
    channels = out
weights += [512 * width, width * width, width * 100]
others += 2 * width + 100
print(sum(int(n * 0.001) for n in weights if n >= 16384), 4 * (others + sum(n for n in weights if n < 16384)))
PYTHON
}

bench_dgc() {
  local round batch=32 width=512 dgc=(strategy.dgc=true 'strategy.dgc_configs.sparsity=[0.999]')
  # 100 classes: of 10 the last layer would travel as 16 rows, as it lies in memory.
  cat >vgg16.json <<JOB
{"model": {"name": "vgg16", "num_classes": 100, "classifier_width": $width, "dropout": 0},
 "data": {"source": "synthetic", "batch_size": $batch, "image": {"channels": 3, "height": 32, "width": 32}, "train": {"samples": 100000}},
 "optimizer": {"name": "momentum", "momentum": 0.9},
 "learning_rate": {"name": "constant", "base": 0.001},
 "train": {"epochs": 1, "fetch_every": 4, "evaluate_every": 0}}
JOB
  local k dense
  read -r k dense <<<"$(vgg16_counts "$width")"
  shape 200000000
  for ((round = 0; round < rounds; ++round)); do
    train dgc_dense vgg16.json 16
    train dgc_sparse vgg16.json 40 "${dgc[@]}"
    train dgc_apart vgg16.json 32 "${apart[@]}"
  done
  local bytes allowed compute bound ours
  bytes=$(median dgc_sparse.bytes) compute=$(median dgc_apart.seconds) ours=$(median dgc_sparse.seconds)
  allowed=$(calculate "1.05 * 8 * $k + $dense")
  bound=$(calculate "$compute + $bytes * 8 / 200e6")
  echo "dgc: VGG-16, classifier of $width, batch $batch a rank, k = $k of 2 ranks; dense $(median dgc_dense.bytes) bytes a step"
  report dgc_bytes "$(calculate "$allowed / $bytes")" 1 "ours $bytes bytes a step, 1.05 x 8 k and what is dense $allowed bytes"
  report dgc_bound "$(calculate "$bound / $ours")" 0.6 "ours $ours s, compute + bytes / link $bound s"
  report dgc "$(calculate "$(median dgc_dense.seconds) / $ours")" 3 "ours $ours s, dense $(median dgc_dense.seconds) s"
}

names=("$@")
[ $# -gt 0 ] || names=(gradient_merge localsgd hierarchical overlap fused_gradients dgc)
for name in "${names[@]}"; do
  declare -F "bench_$name" >/dev/null || { echo "no benchmark '$name' of links"; exit 2; }
  "bench_$name"
done
exit $missed
