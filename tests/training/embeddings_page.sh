#!/usr/bin/env bash
# Follows docs/how-to/embeddings.md: its job, its commands and its programs, with a small network and a small encoder in place of
# those that a user has. Usage: embeddings_page.sh BIN PAGE [programs]. BIN holds fleetrun and fleet-worker. The page's programs run
# with `programs` only, which ends with 77 where FLEET_PYTHON (default: python3) lacks numpy.
set -euo pipefail
bin=$1 page=$2 programs=${3:-} python=${FLEET_PYTHON:-python3}
[ -z "$programs" ] || "$python" -c 'import numpy' 2>/dev/null ||
  { echo "SKIP: the page's programs need numpy; FLEET_PYTHON names a python that has it"; exit 77; }
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PATH=$bin:$PATH CUDA_VISIBLE_DEVICES='' FLEET_RUNTIME_DIR=$folder/run
fail() { echo "FAILED: $1"; [ ! -f said ] || tail -n 20 said; exit 1; }
say_and_run() { echo "\$ $*"; "$@" >said 2>&1 || fail "$* ended with $?"; }

# block N LANGUAGE: the page's Nth block of ```LANGUAGE.
block() { awk -v wanted="$1" -v begin="\`\`\`$2" '!inside && $0 == begin { inside = 1; found++; next } /^```/ { inside = !inside && /^```./ ? 2 : 0; next }
  inside == 1 && found == wanted' "$page"; }

# What a user has: a folder of timm under the page's name, photographs of which two are the same, a trained classifier of texts.
cat >net.json <<'JSON'
{"model": {"name": "mobilenet_v3_small", "num_classes": 5},
 "data": {"source": "synthetic", "batch_size": 2, "train": {"samples": 4}, "mean": [0.5], "std": [0.25], "image": {"channels": 3, "height": 32, "width": 32}},
 "learning_rate": {"base": 0.001}, "train": {"output": "net", "evaluate_every": 0}}
JSON
say_and_run fleet-worker net.json --device cpu
block 1 text >photos.json
weights=$(sed -nE 's/.*"weights": "([^"]+)".*/\1/p' photos.json)
[ -n "$weights" ] || fail "the page's job names no weights"
say_and_run fleetrun export net.json --timm "$weights"
mkdir photos
for name in alpha.bmp animated.gif four_bits.bmp grey.gif interlaced.gif palette.bmp part.gif rgb.bmp; do
  cp "$source/tests/golden/images/$name.rgb.png" "photos/$name.png"
done
cp photos/rgb.bmp.png photos/zz_again.png
cat >vocab.txt <<'VOCABULARY'
[PAD]
[UNK]
[CLS]
[SEP]
good
bad
film
VOCABULARY
printf 'text\tlabel\ngood film\t1\nbad film\t0\n' >train.tsv
printf '{"text": "%s"}\n' "good film" "bad" "good film" >texts.jsonl
cat >mood.json <<'JSON'
{"task": "sequence_classification",
 "model": {"name": "bert", "vocab_size": 7, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "num_classes": 2},
 "data": {"source": "labelled_text", "tokenizer": "vocab.txt", "train": {"file": "train.tsv"}, "text_column": "text", "sequence_length": 8, "batch_size": 2},
 "optimizer": {"name": "adamw"}, "learning_rate": {"name": "constant", "base": 0.001}, "train": {"epochs": 1, "name": "mood"}}
JSON
say_and_run fleet-worker mood.json --device cpu

# The commands, as they are printed there. Those of the prose stand between backquotes.
mapfile -t commands < <(block 1 "" | grep -E '^fleet')
[ ${#commands[@]} = 2 ] || fail "the page's first block has ${#commands[@]} commands instead of 2"
# shellcheck disable=SC2016  # the backquotes are the page's
mapfile -t -O 2 commands < <(grep -oE '`fleet-worker [^`]+`' "$page" | tr -d '`')
[ ${#commands[@]} = 3 ] || fail "the page's prose has another number of commands"
for command in "${commands[@]}"; do
  read -ra words <<<"$command"
  say_and_run "${words[@]}"
  case $command in
    *photos.json*embedding*) mv vectors.npy of_photos.npy; say_and_run "${words[@]/%vectors.npy/vectors.jsonl}" ;;
    *mood.json*) mv vectors.npy of_texts.npy ;;
  esac
done
[ "$(wc -l <predictions.jsonl)" = 9 ] || fail "the photographs were not classified"
[ "$(wc -l <vectors.jsonl)" = 9 ] || fail "not a line for each photograph"

[ -n "$programs" ] || exit 0
mv of_photos.npy vectors.npy
{
  block 1 python
  block 2 python
  cat <<'PYTHON'
assert vectors.dtype == numpy.float32 and vectors.shape[0] == 9, vectors.shape
assert numpy.allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-5)
assert names == sorted(names) and names[7:] == ["photos/rgb.bmp.png", "photos/zz_again.png"], names
lines = numpy.array([json.loads(line)["embedding"] for line in open("vectors.jsonl")], numpy.float32)
assert numpy.allclose(lines, vectors, atol=1e-6)
assert nearest.shape == (3, 5) and (similar.max(axis=1) - similar[range(3), range(3)] < 1e-5).all(), similar
assert vectors[7] @ vectors[8] > 0.99999
texts = numpy.load("of_texts.npy")
assert texts.shape == (3, 16) and abs(texts[0] @ texts[2] - 1) < 1e-5 and texts[0] @ texts[1] < 0.99999, texts @ texts.T
PYTHON
} >program.py
say_and_run "$python" program.py
