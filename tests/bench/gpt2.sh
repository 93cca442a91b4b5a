#!/usr/bin/env bash
# language_step.py with the model gpt2: tests/bench/gpt2.sh [--bf16] [--rounds=N] [--steps=N]
# Builds: bench_language_step
set -euo pipefail
exec "${FLEET_PYTHON:-/usr/bin/python3}" "$(dirname "${BASH_SOURCE[0]}")/language_step.py" gpt2 "$@"
