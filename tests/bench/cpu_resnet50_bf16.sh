#!/usr/bin/env bash
# A whole ResNet-50 training step in mixed precision (bfloat16) on all cores: against its convolution and batch-norm
# primitives alone, then against PyTorch's step (cpu_resnet50_torch.sh says which PyTorch).
#
#   tests/bench/cpu_resnet50_bf16.sh [ROUNDS]     default 3
# Builds: bench_cpu_resnet50
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
rounds=${1:-3}
"$root/build/release/bin/bench_cpu_resnet50" --bf16 --rounds $((3 * rounds))
bash "$root/tests/bench/cpu_resnet50_torch.sh" --bf16 "$rounds"
