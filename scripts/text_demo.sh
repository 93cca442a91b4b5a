#!/usr/bin/env bash
# Trains a small language model on Debian's dictionary of computing (package dict-foldoc) with two ranks, and lets it write: the second
# half of scripts/quickstart.sh text. Passes its arguments on to the training: scripts/text_demo.sh --set train.max_steps=100
# Files that are there already are not made again.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source scripts/foldoc.sh

foldoc_entries text
[ -e "$folder/tokenizer.json" ] ||
  "$fleetrun" train_tokenizer "$folder/foldoc.jsonl" --vocabulary_size 2048 -o "$folder/tokenizer.json"
"$fleetrun" tokenize "$folder/foldoc.jsonl" --tokenizer "$folder/tokenizer.json" -o "$folder/train.bin" --validation 0.02
"$fleetrun" --nproc_per_node=2 config/foldoc_llama.json "$@"
say "200 tokens of the trained model"
exec "$fleetrun" generate config/foldoc_llama.json --tokenizer "$folder/tokenizer.json" --prompt 'operating system' --temperature 0.7 --top_k 40 --tokens 200
