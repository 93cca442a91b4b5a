#!/usr/bin/env bash
# Finds the CUDA libraries that this build's modules need, in LD_LIBRARY_PATH, /usr/local/cuda/lib64, the system folders, then in
# Python packages such as those of PyTorch. Prints one line per library, and a line that adds libraries found only in Python
# packages to LD_LIBRARY_PATH:
#
#   eval "$(scripts/cuda_libraries.sh)"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command -v python3 >/dev/null || die "needs python3"
exec python3 scripts/gpu/machine.py
