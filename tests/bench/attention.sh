#!/usr/bin/env bash
# Attention on one core, forward and gradient, in turns: the rate of its products alone (oneDNN's, in the same process), and
# PyTorch's scaled_dot_product_attention. 12 heads x 64 and 9 heads on 3 x 64; 128, 512 and 2,048 tokens; float32 and bfloat16.
#
#   tests/bench/attention.sh [--causal] [ROUNDS]     default 3
#
# The peer is the PyTorch (2.5 or later) of FLEET_TORCH_PYTHON, or of FLEET_PYTHON (default /usr/bin/python3); without it only
# the products are compared. With --causal half of the scores are left out: the products alone then do twice the work.
# Builds: bench_attention
set -euo pipefail
flags=()
if [ "${1:-}" = --causal ]; then
  flags=(--causal)
  shift
fi
rounds=${1:-3}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${FLEET_TORCH_PYTHON:-${FLEET_PYTHON:-/usr/bin/python3}}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
ratio() { # NAME OURS PEER PEER_TIME
  awk -v name="$1" -v ours="$2" -v peer="$3" -v time="$4" \
    'BEGIN { printf "attention: ratio %.2f (ours %.2f ms, %s %.2f ms) %s\n", time / ours, ours, peer, time, name }'
}

for type in float32 bfloat16; do
  typed=("${flags[@]}")
  [ $type = float32 ] || typed+=(--bf16)
  for tokens in 128 512 2048; do
    for heads in 12/12 9/3; do
      case="${heads}x64 S$tokens"
      rm -f "$folder"/*
      for ((round = 1; round <= rounds; ++round)); do
        "$root/build/release/bin/bench_attention" --rounds 5 --case "$case" "${typed[@]}" 2>/dev/null >"$folder/ours"
        read -r _ _ _ forward _ forward_products _ gradient _ gradient_products _ <"$folder/ours"
        echo "$forward" >>"$folder/forward"
        echo "$forward_products" >>"$folder/forward_products"
        echo "$gradient" >>"$folder/gradient"
        echo "$gradient_products" >>"$folder/gradient_products"
        "$python" "$root/tests/bench/peers/attention_torch.py" --tokens "$tokens" --heads "${heads%/*}" \
          --kv_heads "${heads#*/}" "${typed[@]}" >"$folder/peer" 2>/dev/null || echo "SKIP: torch has no such attention" >"$folder/peer"
        grep -q ^SKIP "$folder/peer" && continue
        read -r _ version _ forward _ gradient <"$folder/peer"
        echo "$forward" >>"$folder/forward_torch"
        echo "$gradient" >>"$folder/gradient_torch"
      done
      for direction in forward gradient; do
        name="$type, $case${flags[*]:+, causal}, $direction"
        ours=$(median "$folder/$direction")
        ratio "$name" "$ours" "its products alone" "$(median "$folder/${direction}_products")"
        [ ! -e "$folder/${direction}_torch" ] || ratio "$name" "$ours" "torch $version" "$(median "$folder/${direction}_torch")"
      done
    done
  done
done
