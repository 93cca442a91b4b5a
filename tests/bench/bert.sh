#!/usr/bin/env bash
# language_step.py with BERT-base, which classifies, without and with dropout, and pre-trains: tests/bench/bert.sh [--bf16] [--rounds=N] [--steps=N]
# Builds: bench_language_step
set -euo pipefail
for model in bert bert_dropout bert_pretraining; do
  "${FLEET_PYTHON:-/usr/bin/python3}" "$(dirname "${BASH_SOURCE[0]}")/language_step.py" "$model" "$@"
done
