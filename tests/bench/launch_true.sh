#!/usr/bin/env bash
# Two ranks of /bin/true: fleetrun against mpirun and torchrun, where they are. Medians over
# interleaved runs, so that whatever else the machine does meets all of them.
#
#   tests/bench/launch_true.sh [RUNS]     default 31; torchrun, the slowest, takes part in every 4th
# torchrun is that of FLEET_TORCH_PYTHON, or of Debian's python3-torch. Ends with 1 where no peer is
# there or a bound is missed.
# Builds: fleetrun
set -euo pipefail
runs=${1:-31}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fleetrun=${FLEETRUN:-$root/build/release/bin/fleetrun}
torch_python=${FLEET_TORCH_PYTHON:-/usr/bin/python3}
declare -A asked=([mpirun]=4 [torchrun]=30) # times as fast
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# PyTorch 1.13 does not start on Python 3.11 without a choice of streams, so one is made for a rank that is not there.
torch_flags=()
run_fleetrun() { CUDA_VISIBLE_DEVICES="" "$fleetrun" --nproc_per_node=2 /bin/true; }
run_mpirun() { mpirun --allow-run-as-root --oversubscribe -n 2 /bin/true; }
run_torchrun() { "$torch_python" -m torch.distributed.run --nproc_per_node=2 --no_python "${torch_flags[@]}" /bin/true; }

peers=(fleetrun)
# add PEER: where it works.
add() {
  "run_$1" >"$1.out" 2>&1 && peers+=("$1")
}
add mpirun || echo "launch_true: mpirun SKIPPED: $(tail -n 1 mpirun.out) (package openmpi-bin)"
add torchrun || { torch_flags=(--redirects 9:1 --tee 9:1) && add torchrun; } ||
  echo "launch_true: torchrun SKIPPED: $(tail -n 1 torchrun.out) (package python3-torch, or FLEET_TORCH_PYTHON)"

for ((run = 0; run < runs; ++run)); do
  for peer in "${peers[@]}"; do
    [ "$peer" != torchrun ] || ((run % 4 == 0)) || continue
    start=${EPOCHREALTIME/[.,]/}
    "run_$peer" >"$peer.out" 2>&1 || { cat "$peer.out"; echo "launch_true: $peer failed"; exit 1; }
    echo $((${EPOCHREALTIME/[.,]/} - start)) >>"$peer.us"
  done
done

median() { sort -n "$1.us" | awk '{ v[NR] = $1 } END { printf "%.1f", v[int((NR + 1) / 2)] / 1000 }'; }
least() { sort -n "$1.us" | awk 'NR == 1 { printf "%.1f", $1 / 1000 }'; }
report() {
  awk -v ours="$(median fleetrun)" -v theirs="$(median "$1")" -v asked="${asked[$1]}" -v peer="$1" 'BEGIN {
    ratio = theirs / ours
    printf "launch_true: ratio %.2f (ours %s ms, %s %s ms; asked for >= %d: %s)\n", ratio, ours, peer, theirs, asked, (ratio >= asked ? "met" : "MISSED")
    exit (ratio < asked) }'
}
for peer in "${peers[@]}"; do
  echo "$peer: median $(median "$peer") ms, least $(least "$peer") ms of $(wc -l <"$peer.us")"
done
[ ${#peers[@]} -gt 1 ] || { echo "launch_true: no peer to compare with"; exit 1; }
# The last line is against mpirun, where it is there.
missed=0
for ((i = ${#peers[@]} - 1; i > 0; --i)); do report "${peers[i]}" || missed=1; done
exit $missed
