#!/usr/bin/env bash
# A link that was down, and a machine that was suspended: for 5 s nothing happens; for 40 s the others notice it, and the node takes part
# again. Every node ends with 0.
# Usage: rejoin.sh FLEETRUN [CASE...]
# A case is NODES/WHICH/FAULT/SECONDS: 2, 4 or 2:4 nodes; the host or another node; its link is down, or all of its processes are stopped
# (stop). Without one: a sample, or with FLEET_REJOIN=all every combination. FLEET_REJOIN_AT_ONCE (6): this many cases run together.
set -euo pipefail
fleetrun=$(realpath "$1")
shift

if [ $# != 1 ]; then
  cases=("$@")
  [ $# -gt 0 ] || cases=(2/other/link/40 2:4/host/stop/40 4/other/link/5)
  [ "${FLEET_REJOIN:-}" != all ] || cases=({2,4,2:4}/{host,other}/{link,stop}/{5,40})
  result=0 pids=()
  finish() {
    local pid code
    for pid in "${pids[@]}"; do
      code=0; wait "$pid" || code=$?
      [ $code = 0 ] || [ $result = 1 ] || result=$((code == 77 ? 77 : 1))
    done
    pids=()
  }
  for one in "${cases[@]}"; do
    "$0" "$fleetrun" "$one" & pids+=($!)
    [ ${#pids[@]} -lt "${FLEET_REJOIN_AT_ONCE:-6}" ] || finish
  done
  finish
  exit $result
fi

one=$1
IFS=/ read -r range which fault seconds <<<"$one"
source "$(dirname "$0")/../../../hosts.sh"
count=${range#*:}
new_switch switches hub
nodes=()
for ((n = 1; n <= count; ++n)); do
  new_host "node$n"
  name=node$n
  nodes[n]=${!name}
  plug "${nodes[$n]}" eth "10.78.0.$n/24" "$switches" hub "port$n"
done
export FLEET_JOB_SECRET=a-secret-of-this-test-only-0123456789

node() {  # node NUMBER: the same line on all
  export CUDA_VISIBLE_DEVICES='' FLEET_RUNTIME_DIR="$folder/run.$1"
  exec ip netns exec "${nodes[$1]}" "$fleetrun" -q --ips="10.78.0.[1-$count]" --nnodes="$range" --max_restart=3 --elastic_timeout=60 \
    --grace=2 --log_dir="log.$1" --rdzv_timeout=60 \
    sh -c ': >"up.$FLEET_GENERATION.$RANK"; until test -e over; do sleep 0.2; done' >"$1.out" 2>&1
}

pid=()
for ((n = 1; n <= count; ++n)); do
  (node $n) & pid[n]=$!
done
for ((n = 0; n < count; ++n)); do await_file "up.1.$n"; done
struck=$count
[ "$which" != host ] || struck=1
said=$(cat [0-9].out | wc -c)
# To every process of the node; a rank's `sleep` may have ended meanwhile.
signal_all() { ip netns pids "${nodes[$struck]}" | xargs -r kill "-$1" 2>/dev/null || true; }
case $fault in
  link) ip -n "${nodes[$struck]}" link set eth down; sleep "$seconds"; ip -n "${nodes[$struck]}" link set eth up ;;
  stop) signal_all STOP; sleep "$seconds"; signal_all CONT ;;
  *) fail "no fault is called '$fault'" ;;
esac

all_again() {  # every rank has run in a later generation
  local rank
  for ((rank = 0; rank < count; ++rank)); do compgen -G "up.[2-9].$rank" >/dev/null || return 1; done
}
if [ "$seconds" -lt 15 ]; then
  sleep 15  # as long as a node may be silent: nothing happens
  ! compgen -G 'up.[2-9].*' >/dev/null || fail "$one: the job was restarted"
  [ "$(cat [0-9].out | wc -c)" = "$said" ] || fail "$one: somebody said something"
elif [ "$range" = "$count" ]; then
  soon "$one: not all ranks have run again" all_again
else  # the others have continued, and will take it in after --elastic_timeout
  await "$struck.out" --elastic_timeout
fi
: >over
for ((n = 1; n <= count; ++n)); do
  code=0; wait "${pid[$n]}" || code=$?
  [ $code = 0 ] || fail "$one: node $n ended with $code"
done
echo "$one: every node ended with 0"
