#!/usr/bin/env bash
# Trains small models of each family, exports them, and loads them with transformers 5 and 4: the same weights and logits.
# Usage: hugging_face_peer.sh BIN. BIN holds fleetrun and fleet-worker. Ends with 77 where transformers is missing:
#   FLEET_TRANSFORMERS    a python that has torch and transformers 5 (default: python3)
#   FLEET_TRANSFORMERS_4  one that has torch and transformers 4.57; without it, its part is left out
set -euo pipefail
bin=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
new=${FLEET_TRANSFORMERS:-python3} old=${FLEET_TRANSFORMERS_4:-}
failed() { echo "FAILED: $1"; [ ! -f said ] || tail -n 20 said; exit 1; }
major() { "$1" -c 'import torch, transformers; print(transformers.__version__.split(".")[0])' 2>/dev/null; }
[ "$(major "$new")" = 5 ] ||
  { echo "SKIP: no transformers 5 for '$new'; FLEET_TRANSFORMERS names a python that has it, and torch"; exit 77; }
[ -z "$old" ] || [ "$(major "$old")" = 4 ] || failed "FLEET_TRANSFORMERS_4, $old, has no transformers 4"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
peer() { "$1" "$here/hugging_face_peer.py" "${@:2}" >said 2>&1 || failed "$*"; }
command() { "$bin/$1" "${@:2}" >said 2>&1 || failed "$*"; }
names=$("$new" "$here/hugging_face_peer.py" make models)

# job_of NAME FOLDER: a job whose model is in FOLDER
job_of() {
  cat >"$1.json" <<JSON
{"task": "causal_lm", "model": {"name": "hf", "folder": "$2"},
 "data": {"source": "tokens", "train": {"file": "models/tokens.bin"}, "sequence_length": 32, "batch_size": 4,
          "end_of_text": "none"},
 "optimizer": {"name": "adamw"}, "train": {"max_steps": 3, "output": "run_$1"},
 "learning_rate": {"name": "constant", "base": 0.01}}
JSON
}
exports=()
for name in $names; do
  job_of "$name" "models/$name"
  command fleet-worker "$name.json" --device cpu
  command fleetrun export "$name.json" --hf "out/$name"
  exports+=("out/$name")
  # Read again: the weights are the same.
  job_of "again_$name" "out/$name"
  command fleetrun export "again_$name.json" --hf "again/$name"
  peer "$new" weights "out/$name" "again/$name"
done

# Several files of weights, of a checkpoint; a second export removes those of the first.
checkpoint=$(find "$PWD/run_llama" -type d -name step_00000003)
command fleetrun export "$checkpoint" --hf out/sharded --shard_size 10K
[ "$(find out/sharded -name 'model-*.safetensors' | wc -l)" -ge 7 ] || failed "fewer than 7 files: $(ls out/sharded)"
peer "$new" weights out/llama out/sharded
exports+=(out/sharded)
cp -r out/sharded out/joined
command fleetrun export "$checkpoint" --hf out/joined
[ "$(cd out/joined && echo ./*.safetensors* )" = ./model.safetensors ] || failed "stale files: $(ls out/joined)"
job_of again_sharded out/sharded
command fleetrun export again_sharded.json --hf again/sharded
peer "$new" weights out/sharded again/sharded

peer "$new" logits new.pt "${exports[@]}"
echo "transformers 5 loads $(cd out && echo *)"
[ -n "$old" ] || { echo "FLEET_TRANSFORMERS_4 is not set: transformers 4 was not tried"; exit 0; }
peer "$old" logits old.pt "${exports[@]}"
peer "$new" compare new.pt old.pt
echo "transformers 4: $(cat said)"
