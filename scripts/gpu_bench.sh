#!/usr/bin/env bash
# One figure of this machine's GPU against PyTorch on the same card in the same run (tests/bench/peers: channels_last, mixed
# precision, eager, one CUDA graph a step, torch.compile, max-autotune), at most 9 minutes. Runs from a build tree and from the
# portable tarball; where PyTorch is missing, ours alone.
#
#   scripts/gpu_bench.sh [NAME] [--output FOLDER] [--data FOLDER] [--limit SECONDS] [--smoke]
#
# Without a name they are listed. Prints a line a measurement and last "NAME: ratio R (ours A UNIT, PEER B UNIT)"; FOLDER
# (output/gpu_bench) gets NAME.json and log.txt. --data: folder of imagenet_200.tar and cifar10_jpeg.tar.xz (FLEET_SHARED_DATA).
# FLEET_TORCH_PYTHON: the interpreter that has PyTorch (python3). Ends with 77 where there is no GPU; --smoke runs a tiny form of
# it on the CPU.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command -v python3 >/dev/null || { echo "SKIP: gpu_bench needs python3"; exit 77; }
exec python3 scripts/gpu/bench.py "$@"
