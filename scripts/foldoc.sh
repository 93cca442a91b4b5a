# shellcheck shell=bash
# Sourced by the demos on Debian's dictionary of computing (package dict-foldoc), behind common.sh: its entries as lines of JSON, and
# the program that trains.
folder=output/foldoc_text
fleetrun=build/release/bin/fleetrun

# foldoc_entries ARGUMENT: writes FOLDER/foldoc.jsonl if it is not there. ARGUMENT is the one of scripts/quickstart.sh for this demo.
foldoc_entries() {
  local dictionary=/usr/share/dictd/foldoc.dict.dz
  [ -e "$dictionary" ] || die "$dictionary is missing: install the package dict-foldoc (scripts/quickstart.sh $1 does it)"
  [ -x "$fleetrun" ] || die "$fleetrun is missing: run scripts/quickstart.sh $1"
  mkdir -p "$folder"
  [ ! -e "$folder/foldoc.jsonl" ] || return 0
  # An entry is a document: its headword begins a line behind an empty line.
  gunzip -c <"$dictionary" | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g; s/\r//g' | awk '
    function finish() { if (entry != "") print "{\"text\": \"" entry "\"}"; entry = "" }
    /^$/ { empty = empty "\\n"; next }
    { if (empty != "" && /^[^ ]/) finish(); entry = entry == "" ? $0 : entry "\\n" empty $0; empty = "" }
    END { finish() }' >"$folder/foldoc.part"
  mv "$folder/foldoc.part" "$folder/foldoc.jsonl"
}
