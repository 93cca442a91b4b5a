#!/bin/bash
# A job in a pid namespace that kept the /proc of the outer one: it restarts, and kills nobody else's processes. As process 1 of a
# namespace, a launcher does not call others' orphans its own.
# foreign_proc.sh FLEETRUN
set -u
fleetrun=$1
export CUDA_VISIBLE_DEVICES= FLEET_RUNTIME_DIR
skip() { echo "SKIP: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "only root makes pid namespaces"
unshare -pf true 2>/dev/null || skip "no pid namespaces"
command -v nsenter >/dev/null || skip "no nsenter"
folder=$(mktemp -d)
FLEET_RUNTIME_DIR=$folder/run
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
fail() { echo "$1"; cat out; exit 1; }
wait_for() { for _ in $(seq 6000); do [ -e "$1" ] && return; sleep 0.01; done; fail "no file $1"; }

code=0
unshare -pf "$fleetrun" --max_restart=1 --nproc_per_node=2 sh -c \
  '[ "$FLEET_GENERATION" = 1 ] || exit 0; setsid sleep 31415 & exit 5' >out 2>&1 || code=$?
[ $code = 0 ] || fail "the restarted job ended with $code"
grep -q 'left behind\|do not take part' out && fail "processes were left behind"
pgrep -f '^sleep 31415' >/dev/null && fail "a daemon was left"
echo "a foreign /proc: the job was restarted"

# Strangers in the job's namespace, whose numbers are also those of other processes outside.
unshare -pf sh -c "'$fleetrun' --nproc_per_node=1 sh -c ': >ready; while [ ! -e end ]; do sleep 0.01; done; exit 5'; echo \$? >code;
  while [ ! -e over ]; do sleep 0.01; done" >out 2>&1 &
outer=$!
wait_for ready
inner=$(pgrep -P $outer)
nsenter -t "$inner" -p sh -c 'for i in $(seq 40); do setsid sleep 27182 >/dev/null 2>&1 & done'
for _ in $(seq 6000); do  # they start beside this script
  before=$(pgrep -fc '^sleep 27182')
  [ "$before" = 40 ] && break
  sleep 0.01
done
: >end
wait_for code
after=$(pgrep -fc '^sleep 27182')
: >over
wait $outer
[ "$(cat code)" = 5 ] || fail "the job ended with $(cat code)"
[ "$before" = 40 ] && [ "$after" = 40 ] || fail "of $before strangers, $after are left"
echo "a foreign /proc: no stranger was killed"

rm -f ready end
unshare -pf --mount-proc "$fleetrun" --nproc_per_node=1 sh -c ': >ready; while [ ! -e end ]; do sleep 0.01; done' >out 2>&1 &
outer=$!
wait_for ready
nsenter -t "$(pgrep -P $outer)" -p -m sh -c 'setsid sleep 16180 >/dev/null 2>&1 &'
: >end
wait $outer || fail "the job ended with $?"
grep -q 'left behind' out && fail "an orphan of others was named"
echo "process 1: others' orphans are not the job's"
