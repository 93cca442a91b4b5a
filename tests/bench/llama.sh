#!/usr/bin/env bash
# language_step.py with the model llama: tests/bench/llama.sh [--bf16] [--rounds=N] [--steps=N]
# Builds: bench_language_step
set -euo pipefail
exec "${FLEET_PYTHON:-/usr/bin/python3}" "$(dirname "${BASH_SOURCE[0]}")/language_step.py" llama "$@"
