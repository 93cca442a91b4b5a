#!/usr/bin/env bash
# Where the CUDA libraries are that this build's modules need: LD_LIBRARY_PATH, /usr/local/cuda/lib64, the system's folders, then
# Python packages such as those that PyTorch brings. Prints a line a library, and the line that adds to LD_LIBRARY_PATH what
# only Python packages have:
#
#   eval "$(scripts/cuda_libraries.sh)"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command -v python3 >/dev/null || die "needs python3"
exec python3 scripts/gpu/machine.py
