#!/usr/bin/env bash
# stage() of scripts/common.sh: a stage that takes too long is ended with all that it started, and named; others are left alone.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $1; the output:"; cat "$folder/output"; exit 1; }

cat >"$folder/run.sh" <<END
source "$root/scripts/common.sh"
hangs() { echo begun; sh -c 'echo \$\$ >"$folder/pid"; exec sleep 1000'; }
stage "\$@"
echo "after the stage"
END
# run RC ARGUMENT...: its output is kept.
run() {
  local wanted=$1 got=0
  shift
  FLEET_STAGE_LOG=$folder/log bash "$folder/run.sh" "$@" >"$folder/output" 2>&1 || got=$?
  [ "$wanted" = "$got" ] || { [ "$wanted" = not0 ] && [ "$got" != 0 ]; } || fail "it ended with $got instead of $wanted"
}
says() { grep -qF -- "$1" "$folder/output" || fail "does not say '$1'"; }

export FLEET_STAGE_LIMITS="tests=1000 build=1"
run not0 build hangs
says "== build: not done after 1 s"
says "sleep 1000"
! grep -q 'after the stage' "$folder/output" || fail "the script went on"
ended() { ! grep -q '^State:[[:space:]]*[^ZX]' "/proc/$(cat "$folder/pid")/status" 2>/dev/null; }  # a zombie at most
for ((i = 0; i < 500; ++i)); do ! ended || break; sleep 0.02; done
ended || fail "what the stage started runs on"

run 0 tests echo hello
says hello
says "== tests: done in"
says "after the stage"
run 3 tests sh -c 'exit 3'
run 0 lint echo unlimited
says unlimited
[ "$(cut -f1 "$folder/log" | tr '\n' ' ')" = "tests lint " ] || fail "the log has $(cat "$folder/log")"
echo "ok"
