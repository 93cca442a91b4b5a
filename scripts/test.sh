#!/usr/bin/env bash
# Installs packages, builds, and runs every test that this machine supports; others are skipped with a reason.
#
#   scripts/test.sh [PRESET] [ctest options...]     PRESET: release (default), dev, asan, tsan, cuda
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=release
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
  preset=$1
  shift
fi
stage "packages" scripts/setup.sh
scripts/setup.sh gdb python3-dbg || true  # a test of the stacks of Python ranks is skipped without them
group_if_new "$preset"
options=() targets=()
case $preset in
  # docs/contributing/sanitizers.md has what is left out, and why.
  asan) options=(-L "^(unit|sanitized)\$") ;;
  tsan)
    modules=(base observe store transport diagnosis rendezvous node node_processes daemon launch comm comm_multiproc data exec)
    export GTEST_FILTER=${GTEST_FILTER:--ClientSessionTest.*}  # of daemon: runs gRPC
    options=(-R "^($(IFS='|' && echo "${modules[*]}"))\$")
    export OMP_NUM_THREADS=1  # GCC's OpenMP is not instrumented
    # die_after_fork: a test starts a thread in a child of a process with threads.
    export TSAN_OPTIONS=${TSAN_OPTIONS:-suppressions=$PWD/tests/tsan_suppressions.txt:die_after_fork=0} ;;
esac
stage "configure" configure "$preset"
if [ ${#options[@]} -gt 0 ]; then  # the programs of these tests, not all others
  mapfile -t targets < <(comm -12 <(ctest --test-dir "build/$preset" -N "${options[@]}" | awk '/Test +#/ { print $3 "_tests" }' | sort) \
                                  <(cmake --build "build/$preset" --target help | sed -n 's/: phony$//p' | sort))
fi
stage "build" compile "$preset" "${targets[@]}"
# List skipped tests and reasons before ctest's summary, which stays the end of the output.
skipped() {
  awk '/: Skipped$/ { getline; sub(/^[ \t]+/, ""); if ($0 != "" && !seen[$0]++) print "skipped: " $0 }
       /^SKIP: / && !seen[$0]++ { print "skipped: " substr($0, 7) }' "build/$preset/Testing/Temporary/LastTest.log" 2>/dev/null || true
}
# The failed cases by name: "failed: rendezvous: JobState.Join".
failed() {
  awk '/^[0-9]+\/[0-9]+ Testing: / { test = $3 }
       /^\[  FAILED  \] [^ ]+( \(|, where|$)/ { name = $4; sub(/,$/, "", name); if (name ~ /\./ && !seen[test, name]++) print "failed: " test ": " name }' \
    "build/$preset/Testing/Temporary/LastTest.log" 2>/dev/null || true
}
# Tests that took more than half a minute.
slow() {
  awk '/^[0-9]+\/[0-9]+ Test: / { test = $3 }
       /^Test time = / && $4 > 30 { printf "%6.1f %s\n", $4, test }' "build/$preset/Testing/Temporary/LastTest.log" 2>/dev/null |
    sort -rn | awk '{ print "slow: " $1 " s  " $2 }'
}
# Hold back the summary, from "NN% tests passed" on, until ctest has ended and its log is complete.
run_tests() {
  # Tests that compute count twice (FLEET_BUSY in tests/CMakeLists.txt).
  # FLEET_STAGE_LOG and FLEET_STAGE_LIMITS are for the stages of this script, not of those that are tested.
  env -u FLEET_STAGE_LOG -u FLEET_STAGE_LIMITS ctest --test-dir "build/$preset" --no-tests=error -j "$((2 * $(nproc)))" --output-on-failure "${options[@]}" "$@" 2>&1 | {
    summary=()
    while IFS= read -r line; do
      if [ ${#summary[@]} -gt 0 ] || [[ $line =~ ^[0-9]+%\ tests\ passed ]]; then
        summary+=("$line")
      else
        printf '%s\n' "$line"
      fi
    done
    skipped
    slow
    failed
    [ ${#summary[@]} -eq 0 ] || printf '%s\n' "" "${summary[@]}"
  }
}
stage "tests" run_tests "$@"
