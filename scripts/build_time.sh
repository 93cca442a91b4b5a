#!/usr/bin/env bash
# Measures a cold build of fleetrun and fleet-worker: total CPU-seconds, and those of the slowest files. Uses no ccache, no
# earlier build and no CUDA. Compiles groups of sources, as the quick start does; FLEET_GROUP_SOURCES=OFF: single files.
#
#   scripts/build_time.sh             builds in build/time
#   scripts/build_time.sh LOG         only summarizes a log of scripts/log_compile.sh (as .ci/run does)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

log=${1:-}
if [ -z "$log" ]; then
  log=$PWD/build/time/compile.log
  rm -rf build/time
  export CCACHE_DISABLE=1 FLEET_COMPILE_LOG=$log
  cmake -S . -B build/time -G Ninja -DCMAKE_BUILD_TYPE=Release -DFLEET_CUDA=OFF -DFLEET_BUILD_TESTS=OFF \
        "-DFLEET_GROUP_SOURCES=${FLEET_GROUP_SOURCES:-ALL}" >/dev/null
  ninja -C build/time fleetrun fleet-worker
fi
# Programs and libraries apart from tests and benchmarks.
sort -rn "$log" | awk '
  $2 ~ /^(tests|docs)\// { test_files++; tests += $1; next }
  { files++; sum += $1; if (files <= 5) longest = longest sprintf("  %6.1f  %s\n", $1, $2) }
  END { printf "build time: %.0f CPU-seconds for %d files; the longest:\n%s", sum, files, longest
        if (test_files) printf "  tests: %.0f CPU-seconds for %d files or groups of files\n", tests, test_files }'
