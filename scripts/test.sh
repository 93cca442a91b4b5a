#!/usr/bin/env bash
# Packages, build, and every test this machine can run; the others skip with a line that says why.
#
#   scripts/test.sh [PRESET] [ctest options...]     PRESET: release (default), dev, asan, tsan, cuda
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=release
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
  preset=$1
  shift
fi
scripts/setup.sh
build "$preset"
options=()
case $preset in
  # The rooms that link Debian's gRPC are left out: its absl is not instrumented and drowns the reports.
  asan) options=(-L unit -E '^(rendezvous|node|launch)') ;;
  tsan) options=(-R '^(base|observe|store|comm|data|exec)') ;;
esac
say "ctest"
# What was skipped, and why, is told before ctest's own summary, which stays the end of the output.
skipped() {
  awk '/: Skipped$/ { getline; sub(/^[ \t]+/, ""); if ($0 != "" && !seen[$0]++) print "skipped: " $0 }
       /^SKIP: / && !seen[$0]++ { print "skipped: " substr($0, 7) }' "build/$preset/Testing/Temporary/LastTest.log" 2>/dev/null || true
}
# The summary, from "NN% tests passed" on, is held back until ctest has ended and its log is whole.
ctest --test-dir "build/$preset" --no-tests=error -j "$(nproc)" --output-on-failure "${options[@]}" "$@" 2>&1 | {
  summary=()
  while IFS= read -r line; do
    if [ ${#summary[@]} -gt 0 ] || [[ $line =~ ^[0-9]+%\ tests\ passed ]]; then
      summary+=("$line")
    else
      printf '%s\n' "$line"
    fi
  done
  skipped
  [ ${#summary[@]} -eq 0 ] || printf '%s\n' "" "${summary[@]}"
}
