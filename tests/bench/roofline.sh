#!/usr/bin/env bash
# The operations and bytes that a ResNet-50 step must compute and move, and where there is a GPU the least time they take on it
# and the time ours takes.
# Builds: fleet-worker
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../../scripts/gpu_bench.sh" roofline "$@"
