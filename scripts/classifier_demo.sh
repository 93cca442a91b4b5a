#!/usr/bin/env bash
# Trains a classifier of texts on Debian's dictionary of computing (package dict-foldoc) with two ranks, and lets it classify three
# sentences: the second half of scripts/quickstart.sh classifier. Passes its arguments on to the training:
# scripts/classifier_demo.sh --set train.epochs=2
# Files that are there already are not made again.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source scripts/foldoc.sh
foldoc_entries classifier

# labelled PART: the entries of eight frequent subjects as `label<tab>text`. The first tag of an entry, such as <operating system>, is
# the label; no tag stays in the text. Every tenth entry is of the part `test`, the others are of `train`.
labelled() {
  sed 's/^{"text": "//; s/"}$//; s/\\\\/\x01/g; s/\\[nt]/ /g; s/\\"/"/g; s/\x01/\\/g' "$folder/foldoc.jsonl" | awk -v part="$1" '
    BEGIN {
      print "label\ttext"
      count = split("communications,company,hardware,jargon,language,networking,operating system,programming", names, ",")
      for (i = 1; i <= count; i++) subject[names[i]] = 1
    }
    match($0, /<[a-z][a-z ,\/-]*>/) {
      label = substr($0, RSTART + 1, RLENGTH - 2)
      sub(/,.*/, "", label)
      if (!(label in subject)) next
      rows++
      if (part == "test" ? rows % 10 : rows % 10 == 0) next
      gsub(/<[a-z][a-z ,\/-]*>|[{}]/, "")
      gsub(/%%%/, " ")
      gsub(/  +/, " ")
      print label "\t" $0
    }'
}
for part in train test; do
  rows=$folder/classes_$part.tsv
  [ -e "$rows" ] || { labelled "$part" >"$rows.part" && mv "$rows.part" "$rows"; }
done

# BERT reads the class of a text from its first token, <s>.
special=()
for token in '<s>' '<pad>' '</s>' '<unk>'; do special+=(--special_token "$token"); done
[ -e "$folder/classes_tokenizer.json" ] ||
  "$fleetrun" train_tokenizer "$folder/foldoc.jsonl" --vocabulary_size 4096 "${special[@]}" --cls_token '<s>' --sep_token '</s>' \
    -o "$folder/classes_tokenizer.json"
"$fleetrun" --nproc_per_node=2 config/foldoc_classifier.json "$@"
say "the classes of three sentences"
cat >"$folder/sentences.txt" <<'END'
A Unix-like kernel with its own file system, scheduler and device drivers.
A functional language with lazy evaluation and type inference.
The packets of a subnet are sent to the next router.
END
exec "$fleetrun" -q config/foldoc_classifier.json --predict "$folder/sentences.txt" --set predict.output=- --set predict.top_k=2
