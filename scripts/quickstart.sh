#!/usr/bin/env bash
# From a bare Debian 12 to two ranks training on real images: packages, build, then Fashion-MNIST for a few epochs.
# The last line shows the accuracy on the test images. Passes its arguments on: scripts/quickstart.sh --set train.epochs=1
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh dataset-fashion-mnist
build release fleetrun fleet-worker
command=(build/release/bin/fleetrun --nproc_per_node=2 config/fashion_mnist.json "$@")
say "${command[*]}"
exec "${command[@]}"
