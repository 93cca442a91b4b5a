#!/usr/bin/env bash
# Saving ResNet-50's state (model and momentum, 195 MiB, a file each, synced) and reading the weights back, against
# safetensors.torch, in turns; drawing the initial values against torchvision's.
#
#   tests/bench/checkpoint.sh [ROUNDS [FOLDER]]     default 5, /dev/shm
#
# The peer is the PyTorch of FLEET_TORCH_PYTHON (default /usr/bin/python3), with the packages safetensors and torchvision.
# Builds: bench_checkpoint_files
set -euo pipefail
rounds=${1:-5}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${FLEET_TORCH_PYTHON:-/usr/bin/python3}
folder=$(mktemp -d "${2:-/dev/shm}/checkpoint_bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT

for ((round = 1; round <= rounds; ++round)); do
  "${FLEET_BIN:-$root/build/release/bin}/bench_checkpoint_files" "$folder" 3 >>"$folder/ours" 2>/dev/null
  "$python" "$root/tests/bench/peers/checkpoint_torch.py" "$folder" 3 >"$folder/peer"
  if grep ^SKIP "$folder/peer"; then exit 0; fi
  cat "$folder/peer" >>"$folder/theirs"
  for file in ours theirs; do echo "round $round: $file $(grep -E '^(draw|save|load)' "$folder/$file" | tail -n 3 | tr '\n' ' ')"; done
done

median() { sed -n "s/^$2 \([0-9.]*\) s.*/\1/p" "$folder/$1" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
for what in draw load save; do
  awk -v ours="$(median ours "$what")" -v theirs="$(median theirs "$what")" -v what="$what" \
    'BEGIN { printf "checkpoint_%s: ratio %.2f (ours %.3f s, torch %.3f s)\n", what, theirs / ours, ours, theirs }'
done
