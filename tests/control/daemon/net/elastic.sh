#!/usr/bin/env bash
# Three nodes with a fleetd each and a laptop, in network namespaces on one bridge: a job that may do with two nodes loses one
# by its cable, once the one that hosts the rendezvous and once another, and goes on; the laptop ends with its outcome.
# Usage: elastic.sh FLEETRUN
set -euo pipefail
fleetrun=$1 fleetd=$(dirname "$1")/fleetd
source "$(dirname "$0")/../../../hosts.sh"
new_switch hub bridge
new_host n1 n2 n3 laptop
spaces=("$hub" "$n1" "$n2" "$n3" "$laptop")
for k in 1 2 3 4; do plug "${spaces[k]}" cable "10.79.0.$k/24" "$hub" bridge "p$k"; done
export CUDA_VISIBLE_DEVICES= FLEETD_SECRET="a secret of this test"
node() {  # node NUMBER
  FLEET_RUNTIME_DIR=$folder/run$1 exec ip netns exec "${spaces[$1]}" "$fleetd" --listen=0.0.0.0:6767 --allow_root \
    --state_dir="$folder/state$1" >"fleetd$1.out" 2>&1
}
for k in 1 2 3; do (node $k) & done
for k in 1 2 3; do soon "fleetd $k does not start" grep -qs "listens on 0.0.0.0:6767" "fleetd$k.out"; done
from_laptop() { ip netns exec "$laptop" "$fleetrun" "$@"; }
rank='trap "exit 0" TERM; : >$FLEET_JOB_ID.$FLEET_GENERATION.$RANK; while [ ! -e $FLEET_JOB_ID.end ]; do sleep 0.02; done'
in_generation() {  # in_generation JOB GENERATION RANKS: as many run
  local r
  for ((r = 0; r < $3; ++r)); do soon "rank $r of generation $2 does not run" test -e "$1.$2.$r"; done
}
for victim in 3 1; do
  job=cut$victim
  from_laptop --via=fleetd --ips=10.79.0.1,10.79.0.2,10.79.0.3 --nnodes=2:3 --elastic_timeout=5 --grace=1 --job_id=$job \
    sh -c "$rank" >$job.out 2>&1 &
  client=$!
  in_generation $job 1 3
  ip -n "${spaces[victim]}" link set cable down
  in_generation $job 2 2
  [ ! -e $job.2.2 ] || fail "the node that was cut off runs in generation 2"
  from_laptop status $job --ips=10.79.0.2 >status.out 2>&1 || true
  expect status.out "^state *running"
  expect status.out "^generation *2"
  : >$job.end
  code=0; wait $client || code=$?
  [ $code = 0 ] || fail "the laptop ended with $code"
  expect $job.out "10.79.0.$victim:6767"
  ip -n "${spaces[victim]}" link set cable up
  ended() { from_laptop ls --ips=10.79.0.1,10.79.0.2,10.79.0.3 >ls.out 2>&1 && grep -q "^$job *succeeded" ls.out; }
  soon "the part that was cut off goes on" ended
  echo "without node $victim, the job went on"
done
