#!/usr/bin/env bash
# Two ranks of /bin/true: fleetrun against mpirun, and torchrun where a working one is. Medians over
# interleaved runs, so that whatever else the machine does meets all of them.
#
#   tests/bench/launch_true.sh [RUNS]     default 31
# Builds: fleetrun
set -euo pipefail
runs=${1:-31}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fleetrun=${FLEETRUN:-$root/build/release/bin/fleetrun}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

run_fleetrun() { CUDA_VISIBLE_DEVICES= "$fleetrun" --nproc_per_node=2 /bin/true; }
run_mpirun() { mpirun --allow-run-as-root --oversubscribe -n 2 /bin/true; }
run_torchrun() { torchrun --nproc-per-node 2 --no-python /bin/true; }

peers=(fleetrun)
for peer in mpirun torchrun; do
  if command -v "$peer" >/dev/null && "run_$peer" >/dev/null 2>&1; then
    peers+=("$peer")
  else
    echo "$peer: no working one on this machine"
  fi
done

for ((run = 0; run < runs; ++run)); do
  for peer in "${peers[@]}"; do
    start=${EPOCHREALTIME/[.,]/}
    "run_$peer" >/dev/null 2>&1
    echo $((${EPOCHREALTIME/[.,]/} - start)) >>"$peer.us"
  done
done

median() { sort -n "$1.us" | awk '{ v[NR] = $1 } END { printf "%.1f", v[int((NR + 1) / 2)] / 1000 }'; }
least() { sort -n "$1.us" | awk 'NR == 1 { printf "%.1f", $1 / 1000 }'; }
ours=$(median fleetrun)
report() {
  local theirs
  theirs=$(median "$1")
  awk -v ours="$ours" -v theirs="$theirs" -v peer="$1" \
    'BEGIN { printf "launch_true: ratio %.2f (ours %s ms, %s %s ms)\n", theirs / ours, ours, peer, theirs }'
}
for peer in "${peers[@]}"; do echo "$peer: median $(median "$peer") ms, least $(least "$peer") ms of $runs"; done
[ ${#peers[@]} -gt 1 ] || { echo "launch_true: no peer to compare with: install openmpi-bin"; exit 1; }
# The last line is against mpirun, where it is there.
for ((i = ${#peers[@]} - 1; i > 0; --i)); do report "${peers[i]}"; done
