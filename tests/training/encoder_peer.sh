#!/usr/bin/env bash
# Reads encoders that transformers has written, one for each head, writes them again, and trains them: transformers 5 and 4 load what is
# written, with the same weights, names of classes and logits.
# Usage: encoder_peer.sh BIN. BIN holds fleetrun and fleet-worker. Ends with 77 where transformers is missing:
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
peer() { "$1" "$here/encoder_peer.py" "${@:2}" >said 2>&1 || failed "$*"; }
command() { "$bin/$1" "${@:2}" >said 2>&1 || failed "$*"; }
"$new" "$here/encoder_peer.py" make models >names 2>said || failed make

# data_of NAME TASK: the data section of its job
data_of() {
  local rest='"batch_size": 2, "sequence_length": 24'
  case $2 in
    masked_lm)
      local pairs=false
      [ "$1" != bert_pretraining ] || pairs=true
      echo "\"source\": \"masked_text\", \"train\": {\"file\": [\"models/texts.jsonl\"]}, \"next_sentence\": $pairs, $rest" ;;
    sequence_classification) echo "\"source\": \"labelled_text\", \"train\": {\"file\": \"models/classes.tsv\"}, $rest" ;;
    token_classification) echo "\"source\": \"token_labels\", \"train\": {\"file\": \"models/labels.jsonl\"}, $rest" ;;
    question_answering)
      echo "\"source\": \"squad\", \"train\": {\"file\": \"models/squad.json\"}, \"question_length\": 8, \"stride\": 4, $rest" ;;
  esac
}
# job_of JOB NAME TASK FOLDER OUTPUT: a job whose model is in FOLDER
job_of() {
  cat >"$1.json" <<JSON
{"task": "$3", "model": {"name": "hf", "folder": "$4"}, "data": {"tokenizer": "models/$2/tokenizer.json", $(data_of "$2" "$3")},
 "optimizer": {"name": "adamw"}, "train": {"max_steps": 2, "output": "$5"},
 "learning_rate": {"name": "constant", "base": 0.01}}
JSON
}
exports=()
while read -r name task; do
  # Read and written: the same model.
  job_of "same_$name" "$name" "$task" "models/$name" "run_same_$name"
  command fleetrun export "same_$name.json" --hf "same/$name"
  peer "$new" same "models/$name" "same/$name"
  # Trained, written, read again and written: the same weights.
  job_of "$name" "$name" "$task" "models/$name" "run_$name"
  command fleet-worker "$name.json" --device cpu
  command fleetrun export "$name.json" --hf "out/$name"
  job_of "again_$name" "$name" "$task" "out/$name" "run_again_$name"
  command fleetrun export "again_$name.json" --hf "again/$name"
  peer "$new" same "out/$name" "again/$name"
  exports+=("out/$name")
done <names
[ "${#exports[@]}" = 14 ] || failed "${#exports[@]} models"

# A pre-trained model gets another head: lines name the new parameters, and the weights that are not used.
job_of fresh bert_sequence_classification sequence_classification models/bert_pretraining run_fresh
"$bin/fleet-worker" fresh.json --device cpu --set model.num_classes=3 >said 2>&1 || failed fresh
for line in "keep their initial values: classifier.weight, classifier.bias" "cls.seq_relationship.weight"; do
  grep -qF "$line" said || failed "no line about $line"
done
command fleetrun export fresh.json --set model.num_classes=3 --hf out/fresh
exports+=(out/fresh)

peer "$new" logits new.pt "${exports[@]}"
echo "transformers 5 loads $(cd out && echo *)"
[ -n "$old" ] || { echo "FLEET_TRANSFORMERS_4 is not set: transformers 4 was not tried"; exit 0; }
peer "$old" logits old.pt "${exports[@]}"
peer "$new" compare new.pt old.pt
echo "transformers 4: $(cat said)"
