# shellcheck shell=bash
# Sourced by the scripts in this folder: strict mode, the repository root as working directory, a few helpers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Prints a progress line to standard error, so that standard output carries only the script's result.
say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Number of compile jobs: one per core, limited by memory (gRPC's and json's headers take about 1 GB per job).
job_count() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1000000)}' /proc/meminfo 2>/dev/null || echo "$cores")
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# CPU-seconds of this script's commands that have ended.
cpu_seconds() { awk -v ticks="$(getconf CLK_TCK)" '{ print int(($16 + $17) / ticks) }' "/proc/$$/stat"; }

# stage TEXT COMMAND...: says what it does and how long it took. FLEET_STAGE_LOG, if set: appends text, seconds and CPU-seconds.
stage() {
  local text=$1 begun=$SECONDS cpu
  cpu=$(cpu_seconds)
  shift
  say "$text"
  "$@"
  say "$text: done in $((SECONDS - begun)) s"
  [ -z "${FLEET_STAGE_LOG:-}" ] || printf '%s\t%d\t%d\n' "$text" $((SECONDS - begun)) $(($(cpu_seconds) - cpu)) >>"$FLEET_STAGE_LOG"
}

# group_by_folder FILE...: groups of sources of one folder each that can be compiled as one (source_groups.awk), a line each.
group_by_folder() {
  printf '%s\n' "$@" | sed 's|/[^/]*$||' | sort -u | while read -r folder; do
    printf '%s\n' "$@" | grep -E "^$folder/[^/]*\$" | xargs awk -v size=8 -f scripts/source_groups.awk
  done
}

# configure PRESET: configures build/PRESET. FLEET_GROUP_SOURCES, if set: scripts/cmake/group_sources.cmake.
configure() {
  local preset=$1
  say "configure build/$preset"
  local output
  output=$(cmake --preset "$preset" ${FLEET_GROUP_SOURCES:+"-DFLEET_GROUP_SOURCES=$FLEET_GROUP_SOURCES"} 2>&1) || {
    printf '%s\n' "$output" >&2
    die "cmake --preset $preset failed; run scripts/setup.sh if a package is missing"
  }
  grep -E '^-- CUDA' <<<"$output" >&2 || true
}

# build PRESET [TARGET...]: configures build/PRESET and builds the targets (default: everything).
build() {
  configure "$1"
  compile "$@"
}

# compile PRESET [TARGET...]: the same, in a folder that is configured.
compile() {
  local preset=$1
  shift
  say "build/$preset: ${*:-everything}"
  # Redirect to standard error: standard output carries only the script's result.
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  cmake --build "build/$preset" -j "$(job_count)" "${targets[@]}" >&2
}
