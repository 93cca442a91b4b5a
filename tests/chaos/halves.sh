#!/usr/bin/env bash
# Runs both halves of the trials of chaos at the same time, each over a network of its own: trials wait for most of their time.
# Their seeds are those of one run.
#
#   tests/chaos/halves.sh TRIALS CHAOS [ARGUMENT...]
# The output of a half follows when both have ended. The exit code is 0 if all trials went well, 77 if none could be made.
set -euo pipefail
trials=$1
shift
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
pids=()
for half in 0 1; do
  first=$((half * (trials / 2)))
  count=$((half == 0 ? trials / 2 : trials - trials / 2))
  # A shell starts what runs in the background with SIGINT ignored.
  env --default-signal=INT "$@" --first $first --trials $count >"$output/$half" 2>&1 &
  pids+=($!)
done
status=0
for half in 0 1; do
  wait "${pids[half]}" || status=$?
  cat "$output/$half"
done
exit "$status"
