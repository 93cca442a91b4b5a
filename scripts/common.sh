# shellcheck shell=bash
# Sourced by the scripts beside it: strict mode, the repository's root as the working directory, a few helpers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One line a reader can follow the script by; standard error, so that a script's output stays its result.
say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Compile jobs: one a core, and no more than memory allows (gRPC's and json's headers take about 1 GB a job).
job_count() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1000000)}' /proc/meminfo 2>/dev/null || echo "$cores")
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# build PRESET [TARGET...]: configures build/PRESET and builds the targets (everything without one).
build() {
  local preset=$1
  shift
  say "configure build/$preset"
  local output
  output=$(cmake --preset "$preset" 2>&1) || {
    printf '%s\n' "$output" >&2
    die "cmake --preset $preset failed; run scripts/setup.sh if a package is missing"
  }
  grep -E '^-- CUDA' <<<"$output" >&2 || true
  say "build/$preset: ${*:-everything}"
  # Stdout becomes stderr: a script's own output stays its result.
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  cmake --build "build/$preset" -j "$(job_count)" "${targets[@]}" >&2
}
