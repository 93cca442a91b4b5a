#!/usr/bin/env bash
# A whole ResNet-50 training step on all cores (16 images of 224²) against PyTorch's, in turns: float32 against PyTorch's
# better layout; --bf16: mixed precision against PyTorch's bfloat16 autocast, channels last.
#
#   tests/bench/cpu_resnet50_torch.sh [--bf16] [ROUNDS]     default 3
#
# The peer is the PyTorch of FLEET_PYTHON (default /usr/bin/python3, Debian's python3-torch). FLEET_TORCH_PYTHON names the
# interpreter of another one, such as a virtual environment with a current torch and torchvision, reported next to it.
# Builds: bench_cpu_resnet50
set -euo pipefail
name=cpu_resnet50_torch ours=() theirs=()
if [ "${1:-}" = --bf16 ]; then
  name=cpu_resnet50_bf16_torch ours=(--bf16) theirs=(--bf16 --layouts channels_last)
  shift
fi
rounds=${1:-3}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
threads=$(nproc)

declare -A python=([torch]=${FLEET_PYTHON:-/usr/bin/python3})
[ -z "${FLEET_TORCH_PYTHON:-}" ] || python[torch_other]=$FLEET_TORCH_PYTHON

run_peer() { "${python[$1]}" "$root/tests/bench/peers/resnet50_cpu.py" --threads "$threads" --steps 3 --warmup 1 "${theirs[@]}" | tee -a "$folder/$1.log"; }

for ((round = 1; round <= rounds; ++round)); do
  "$root/build/release/bin/bench_cpu_resnet50" "${ours[@]}" --rounds 3 2>/dev/null >"$folder/bench"
  if grep ^SKIP "$folder/bench"; then exit 0; fi
  sed -n 's/.*(ours \([0-9.]*\) images.*/\1/p' "$folder/bench" >>"$folder/ours"
  echo "round $round: ours $(tail -n 1 "$folder/ours") images/s"
  for peer in "${!python[@]}"; do
    run_peer "$peer" | sed "s/^/round $round: /"
    if grep -q ^SKIP "$folder/$peer.log"; then
      [ "$peer" != torch ] || exit 0
      unset "python[$peer]"
      continue
    fi
    sed -n 's/^best: \([0-9.]*\) .*/\1/p' "$folder/$peer.log" | tail -n 1 >>"$folder/$peer"
  done
done

median() { sort -n "$folder/$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
for peer in torch_other torch; do  # the last line is against Debian's
  [ -s "$folder/$peer" ] || continue
  version=$(sed -n 's/^torch \([^ ]*\) .*/\1/p' "$folder/$peer.log" | head -n 1)
  awk -v ours="$(median ours)" -v theirs="$(median "$peer")" -v version="$version" -v name="$name" \
    'BEGIN { printf "%s: ratio %.2f (ours %.2f images/s, torch %s %.2f images/s)\n", name, ours / theirs, ours, version, theirs }'
done
