#!/usr/bin/env bash
# Runs one benchmark of this machine's GPU against PyTorch on the same card (tests/bench/peers: channels_last, mixed precision,
# eager, one CUDA graph per step, torch.compile, max-autotune), in at most 9 minutes. Works in a build tree and in the portable
# tarball. Without PyTorch it measures fleetrun alone.
#
#   scripts/gpu_bench.sh [NAME] [--output FOLDER] [--data FOLDER] [--limit SECONDS] [--smoke]
#   scripts/gpu_bench.sh families [NET...] [--next] ...
#
# families measures a network of each family, at most 60 s each, and sorts them by ratio; its results accumulate in FOLDER/families
# by card and version, and --next begins with those that are missing.
#
# Without a name, lists the benchmarks. Prints one line per measurement, and last "NAME: ratio R (ours A UNIT, PEER B UNIT)"; FOLDER
# (output/gpu_bench) gets NAME.json and log.txt. --data: folder of imagenet_200.tar and cifar10_jpeg.tar.xz (FLEET_SHARED_DATA).
# FLEET_TORCH_PYTHON: the interpreter that has PyTorch (python3). Exits with 77 without a GPU; --smoke runs a tiny
# version on the CPU.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command -v python3 >/dev/null || { echo "SKIP: gpu_bench needs python3"; exit 77; }
exec python3 scripts/gpu/bench.py "$@"
