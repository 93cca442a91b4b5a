#!/usr/bin/env bash
# A process that SIGKILL does not end (as one that waits for a dead file server; here: frozen by the freezer of
# cgroup version 1) keeps fleetrun from nothing: it ends in time, and names what it leaves behind.
# Usage: unkillable.sh FLEETRUN
set -euo pipefail
fleetrun=$1
skip() { echo "SKIP: $*"; exit 77; }
freezer=$(awk '$3 == "cgroup" && $4 ~ /freezer/ {print $2; exit}' /proc/mounts)
[ -n "$freezer" ] || skip "no freezer of cgroup version 1 here"
cell=$freezer/fleet-test-$$
mkdir "$cell" 2>/dev/null || skip "no cgroup can be made here"
folder=$(mktemp -d)
clean_up() {
  echo THAWED >"$cell/freezer.state" || true
  for ((i = 0; i < 100; ++i)); do
    rmdir "$cell" 2>/dev/null && break
    sleep 0.1
  done
  rm -rf "$folder"
}
trap clean_up EXIT
cd "$folder"
code=0
start=$SECONDS
FLEET_RUNTIME_DIR="$folder/run" CUDA_VISIBLE_DEVICES= timeout 60 "$fleetrun" --log_dir=log sh -c "
  sleep 1000 & echo \$! >$cell/cgroup.procs; echo FROZEN >$cell/freezer.state
  while [ \$(cat $cell/freezer.state) != FROZEN ]; do :; done
  exit 5" >out 2>&1 || code=$?
took=$((SECONDS - start))
fail() { echo "FAILED: $*"; cat out; exit 1; }
[ $code = 5 ] || fail "ended with $code instead of 5"
[ $took -le 40 ] || fail "ended after $took s"
grep -q "cannot be killed and are left behind" out || fail "does not say that something is left"
grep -Eq "pid [0-9]+ \(sleep\), state [A-Z]" out || fail "does not name what is left"
echo "ended after $took s; said: $(grep -E 'pid [0-9]+ \(sleep\)' out)"
