#!/usr/bin/env bash
# Continues a text and evaluates the GPL with the real weights of SmolLM2-135M, against values of transformers and lm-eval.
# Usage: smollm2_peer.sh BIN. BIN holds fleetrun and fleet-worker. Ends with 77 where the weights are missing:
#   FLEET_SMOLLM2   the folder that scripts/fetch_smollm2.py makes
set -euo pipefail
bin=$1
gpl=/usr/share/common-licenses/GPL-3
skip() { echo "SKIP: $1"; exit 77; }
failed() { echo "FAILED: $1"; exit 1; }
model=${FLEET_SMOLLM2:-}
[ -n "$model" ] || skip "FLEET_SMOLLM2 names no folder (scripts/fetch_smollm2.py)"
[ -e "$model/model.safetensors" ] || failed "$model has no model.safetensors"
[ "$(sha256sum 2>/dev/null <"$gpl" | cut -c1-8)" = 3972dc97 ] || skip "no $gpl as Debian has it"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$bin/fleetrun" tokenize "$gpl" --tokenizer "$model/tokenizer.json" --output gpl.bin --eos none >said 2>&1 ||
  failed "fleetrun tokenize: $(cat said)"
[ "$(stat -c %s gpl.bin)" = $((2 * 7658)) ] || failed "the GPL has $(stat -c %s gpl.bin) bytes of tokens"
head -c 4000 gpl.bin >first.bin  # 2,000 tokens
cat >job.json <<JSON
{"task": "causal_lm", "model": {"name": "hf", "folder": "$model"},
 "data": {"source": "tokens", "train": {"file": "first.bin"}, "test": {"file": "first.bin"}, "sequence_length": 256,
          "batch_size": 4, "end_of_text": "none"},
 "optimizer": {"name": "adamw"}, "train": {"evaluate_only": true, "output": "run"}}
JSON

# evaluate WHAT TOKENS LOSS OPTION...: 2e-5 is the distance of transformers' own float32 from its float64.
evaluate() {
  local what=$1 tokens=$2 loss=$3
  shift 3
  "$bin/fleet-worker" job.json --device cpu "$@" >said 2>&1 || failed "$what: $(cat said)"
  local got
  got=$(tail -n 1 run/evaluations.jsonl)
  echo "$what: $got"
  echo "$got" | sed 's/.*"tokens":\([0-9.]*\),"loss":\([0-9.]*\),.*/\1 \2/' | awk -v tokens="$tokens" -v loss="$loss" \
    '{ exit !($1 == tokens && $2 > loss - 2e-5 && $2 < loss + 2e-5) }' || failed "$what: expected $tokens tokens of loss $loss"
}
evaluate "lm-eval, rolling" 2000 "$(awk 'BEGIN { printf "%.6f", 6640.22 / 2000 }')" \
  --set data.evaluation.windows=rolling --set data.evaluation.prefix=1
evaluate "transformers, stride 256" 1992 "$(awk 'BEGIN { printf "%.6f", log(28.6073) }')" \
  --set data.evaluation.windows=strided --set data.evaluation.stride=256
evaluate "transformers, stride 128" 1985 "$(awk 'BEGIN { printf "%.6f", log(22.4818) }')" \
  --set data.evaluation.windows=strided --set data.evaluation.stride=128

prompt="The Battle of Waterloo was fought on Sunday 18 June 1815, near Waterloo. The French army under the command of Napoleon"
"$bin/fleetrun" generate job.json --device cpu --temperature 0 --tokens 7 --prompt "$prompt" 2>said >text ||
  failed "fleetrun generate: $(cat said)"
[ "$(cat text)" = "$prompt Bonaparte was defeated by the British army" ] || failed "the text is: $(cat text)"
