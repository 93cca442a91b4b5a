#!/usr/bin/env bash
# Checks this machine's GPU: every operation and training against the CPU, CUDA graphs, loss scaling, memory, several ranks on
# one GPU, a killed rank. Takes at most 8 minutes. Works in a build tree and in the portable tarball. Reports parts that crash or
# hang, and continues with the others.
#
#   scripts/gpu_check.sh [PART...] [--list] [--output FOLDER] [--limit SECONDS] [--smoke]
#
# Prints one line per part and a table; FOLDER (output/gpu_check) gets gpu_check.json and log.txt. Exits with 0, with 1 if a part
# failed, with 77 without a GPU. --smoke runs the parts that work on the CPU, to test the checks.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command -v python3 >/dev/null || { echo "SKIP: gpu_check needs python3"; exit 77; }
exec python3 scripts/gpu/check.py "$@"
