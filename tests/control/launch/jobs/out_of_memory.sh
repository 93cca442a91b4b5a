#!/usr/bin/env bash
# A rank that the kernel kills for lack of memory is named as such. Needs a memory cgroup that may be made and limited.
# Usage: out_of_memory.sh FLEETRUN
set -euo pipefail
fleetrun=$1
skip() { echo "SKIP: $*"; exit 77; }
root=/sys/fs/cgroup own=
while IFS=: read -r _ controllers path; do
  [ "$controllers" = memory ] && own=$root/memory$path limit=memory.limit_in_bytes
  [ -z "$controllers" ] && [ -z "$own" ] && own=$root$path limit=memory.max
done </proc/self/cgroup
group=$own/fleet_test_$$
mkdir "$group" 2>/dev/null || skip "no cgroup can be made in $own"
folder=$(mktemp -d)
trap 'rmdir "$group" 2>/dev/null || true; rm -rf "$folder"' EXIT
[ -w "$group/$limit" ] || skip "this cgroup has no limit of memory"
echo $((96 << 20)) >"$group/$limit" || skip "the limit of memory cannot be set"
[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
cd "$folder"
code=0
(
  echo $BASHPID >"$group/cgroup.procs"
  CUDA_VISIBLE_DEVICES= exec "$fleetrun" --nproc_per_node=2 sh -c \
    'test $RANK = 0 && exec sleep 100; echo growing; x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done' >out 2>&1
) || code=$?
[ $code = 137 ] || { cat out; echo "ended with $code"; exit 1; }
grep -q "rank 1 .* was killed by SIGKILL.*out of memory" out || { cat out; exit 1; }
grep -q '"out_of_memory": true' log/verdict.json || { cat log/verdict.json; exit 1; }
echo "out of memory was recognised"
