#!/usr/bin/env bash
# From a bare Debian 12 to two ranks training on real images: packages, build, then Fashion-MNIST for a few epochs.
# The last line shows the accuracy on the test images. Passes its arguments on: scripts/quickstart.sh --set train.epochs=1
# scripts/quickstart.sh text trains a small language model on a dictionary instead, and lets it write (scripts/text_demo.sh);
# scripts/quickstart.sh classifier trains a BERT to tell the subject of its entries (scripts/classifier_demo.sh);
# scripts/quickstart.sh photos DIR trains on your own photographs, a folder per class (scripts/photos_demo.sh).
# It installs only what this needs, and builds no tests. After an interruption or a failure, it goes on where it was.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

data=dataset-fashion-mnist
training="train ten epochs on two ranks (about a minute)"
command=(build/release/bin/fleetrun --nproc_per_node=2 config/fashion_mnist.json "$@")
if [ "${1:-}" = text ]; then
  shift
  data=dict-foldoc
  training="train a language model on two ranks (two minutes), and let it write"
  command=(scripts/text_demo.sh "$@")
elif [ "${1:-}" = classifier ]; then
  shift
  data=dict-foldoc
  training="train a classifier of texts on two ranks (a minute), and let it classify three sentences"
  command=(scripts/classifier_demo.sh "$@")
elif [ "${1:-}" = photos ]; then
  shift
  data=
  training="train a classifier of your photographs on two ranks (about a minute without --weights), and write a page about it"
  # Its paths are relative to the folder in which this script was started.
  command=(env -C "$OLDPWD" "$PWD/scripts/photos_demo.sh" "$@")
  "${command[@]}" --check || exit  # mistakes show before the build
fi
jobs=$(job_count)
build_minutes=$((9 / jobs + 1))
build_steps=110  # about as many as there are on an empty folder
build_mb=300     # 130 without CUDA

# mb_to_build: the space that the rest of the build needs.
mb_to_build() {
  local used
  used=$(du -sk build/release 2>/dev/null | cut -f1)
  echo $((build_mb > ${used:-0} / 1024 ? build_mb - ${used:-0} / 1024 : 0))
}

need_space() {
  local folder needed free
  folder=$(existing "$PWD/build/release") needed=$(mb_to_build)
  free=$(free_mb "$folder")
  [ "$free" -ge "$needed" ] || die "not enough space: $free MB are free in $folder, but the build needs $needed MB; make room there, then $again"
}

packages() {
  local options=(--build)
  # The build's space must stay free, if it is on the same disk.
  [ "$(stat -c %d "$(existing build/release)")" != "$(stat -c %d /usr)" ] || options+=(--keep-free "$(mb_to_build)")
  # It says itself what failed, or that it was interrupted.
  trap : INT
  scripts/setup.sh "${options[@]}" ${data:+"$data"} || exit
  trap interrupted INT
}

# Shows ninja's lines as progress. Others go to standard error and to the file LOG.
show_build() {
  trap '' INT  # until ninja ends
  local log=$1 line finished total compiled=0 begun=$SECONDS left
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*)$ ]]; then
      finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} line=${BASH_REMATCH[3]}
      [[ $line != Re-* ]] || continue  # looks for new files
      # Only compiling costs time. The usual time of ten steps counts too: the first few alone would let the estimate jump.
      [[ $line != Building* ]] || compiled=$((compiled + 1))
      left=$(((total - finished) * (SECONDS - begun + 10 * build_minutes * 60 / build_steps) / (compiled + 10)))
      progress "build: $finished of $total ($((finished * 100 / total)) %), about $(duration "$left") left"
    elif [[ $line != "ninja: no work to do." ]]; then
      progress_end
      printf '%s\n' "$line" | tee -a "$log" >&2
    fi
  done
  progress_end
}

compile_programs() {
  need_space
  # A later build by another preset or script turns the tests on again.
  group_if_new release
  configure release -DFLEET_BUILD_TESTS=OFF
  local log output failed
  log=$(mktemp)
  say "build/release: fleetrun fleet-worker, $jobs at a time; a step takes up to a minute"
  if ! NINJA_STATUS="[%f/%t] " cmake --build build/release -j "$jobs" --target fleetrun fleet-worker 2>&1 | show_build "$log"; then
    output=$(cat "$log")
    rm -f "$log"
    ! grep -q "interrupted by user" <<<"$output" || interrupted
    die_if_full "$output" "$PWD/build" "${TMPDIR:-/tmp}"
    failed=$(sed -nE 's/^FAILED: ([^ ]+).*/\1/p' <<<"$output" | head -n 1)
    ! grep -qE 'Killed|out of memory|cannot allocate memory' <<<"$output" ||
      die "not enough memory for ${failed:-the build} with $jobs jobs; end other programs, then $again"
    die "the build failed${failed:+ at $failed} (see above); fix the cause, then $again"
  fi
  rm -f "$log"
}

trap interrupted INT
need_space
stage "1 of 3: install packages (a minute or two, by the network)" packages
stage "2 of 3: build fleetrun and fleet-worker (about $build_minutes minutes with $jobs jobs on an empty build folder)" compile_programs
say "3 of 3: $training: ${command[*]}"
exec "${command[@]}"
