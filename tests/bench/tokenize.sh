#!/usr/bin/env bash
# Tokenizing on one core, GPT-2's and Llama-3's tokenizers: fleetrun against tiktoken and Hugging Face's tokenizers, in turns. The
# ids must be equal.
# Usage: FLEET_TOKENIZERS=FOLDER FLEET_PYTHON=PYTHON tokenize.sh [TEXT]
# FOLDER: as scripts/fetch_tokenizers.py makes it. PYTHON: one with tiktoken and tokenizers. TEXT: default, the sources of
# Python's library and the licences of Debian.
# Builds: bench_tokenize
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec "${FLEET_PYTHON:-/usr/bin/python3}" tests/bench/peers/tokenize_peers.py "$@"
