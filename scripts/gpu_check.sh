#!/usr/bin/env bash
# Whether everything is right on this machine's GPU: every operation against the CPU's, training against the CPU's, CUDA graphs,
# loss scaling, memory, several ranks on one GPU, a rank that is killed. Takes at most 8 minutes; runs from a build tree and
# from the portable tarball. A part that crashes or hangs is told as such and hides none of the others.
#
#   scripts/gpu_check.sh [PART...] [--list] [--output FOLDER] [--limit SECONDS] [--smoke]
#
# Prints a line a part and a table; FOLDER (output/gpu_check) gets gpu_check.json and log.txt. Ends with 0, with 1 where a part
# failed, with 77 where there is no GPU. --smoke runs what can be run on the CPU: it checks the checks.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command -v python3 >/dev/null || { echo "SKIP: gpu_check needs python3"; exit 77; }
exec python3 scripts/gpu/check.py "$@"
