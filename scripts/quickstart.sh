#!/usr/bin/env bash
# From a bare Debian 12 to two ranks training on real images: packages, build, then Fashion-MNIST for a few epochs.
# The last line shows the accuracy on the test images. Passes its arguments on: scripts/quickstart.sh --set train.epochs=1
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# stage TEXT COMMAND...: says what it does, and how long it took.
stage() {
  local text=$1 begun=$SECONDS
  shift
  say "$text"
  "$@"
  say "done in $((SECONDS - begun)) s"
}

command=(build/release/bin/fleetrun --nproc_per_node=2 config/fashion_mnist.json "$@")
jobs=$(job_count)
stage "1 of 3: install packages (a minute or two, by the network)" scripts/setup.sh dataset-fashion-mnist
export NINJA_STATUS="[%f/%t, %e s] "
stage "2 of 3: build (about $((18 / jobs + 1)) minutes with $jobs jobs on an empty build folder)" build release fleetrun fleet-worker
say "3 of 3: train ten epochs on two ranks (about 20 s): ${command[*]}"
exec "${command[@]}"
