#!/usr/bin/env bash
# Two nodes with a fleetd each and a laptop, in network namespaces on one bridge: the laptop starts a job on both, which
# ends when the laptop's cable is pulled, unless it was detached.
# Usage: laptop.sh FLEETRUN HELPER FLOOD
set -euo pipefail
fleetrun=$1 helper=$2 flood=$3 fleetd=$(dirname "$1")/fleetd
source "$(dirname "$0")/../../../hosts.sh"
new_switch hub bridge
new_host a b laptop
plug "$a" cable 10.78.0.1/24 "$hub" bridge p1
plug "$b" cable 10.78.0.2/24 "$hub" bridge p2
plug "$laptop" cable 10.78.0.9/24 "$hub" bridge p9
export CUDA_VISIBLE_DEVICES= FLEETD_SECRET="a secret of this test"

node() {  # node NAMESPACE NUMBER
  XDG_STATE_HOME=$folder/state$2 FLEET_RUNTIME_DIR=$folder/run$2 exec ip netns exec "$1" "$fleetd" --listen=0.0.0.0:6767 --allow_root >"fleetd$2.out" 2>&1
}
(node "$a" 1) & (node "$b" 2) &
for n in 1 2; do soon "fleetd $n does not start" grep -qs "listens on 0.0.0.0:6767" "fleetd$n.out"; done
from_laptop() { ip netns exec "$laptop" "$fleetrun" "$@"; }

from_laptop --via=fleetd --ips=10.78.0.1,10.78.0.2 --nproc_per_node=2 --ranks=all "$helper" store >met.out 2>&1 || fail "ended with $?"
for rank in "0 10.78.0.1" "3 10.78.0.2"; do expect met.out "^\[rank $rank\] sum 14"; done
echo "met through the laptop"

endless=': >$FLEET_JOB_ID.$RANK; while :; do sleep 0.05; done'
start() { from_laptop --via=fleetd --ips=10.78.0.1,10.78.0.2 --grace=1 "--job_id=$1" "${@:2}" sh -c "$endless" >"$1.out" 2>&1; }
start away --detach || fail "ended with $?"

# Without the secret: nothing is read, started or ended.
stranger() {
  FLEETD_SECRET="not the secret of it" from_laptop "$@" --ips=10.78.0.1 >stranger.out 2>&1 && fail "a stranger may: $*"
  expect stranger.out "another secret"
  ! grep -q "$folder\|running" stranger.out || fail "a stranger reads: $*"
}
for what in ls "status away" "logs away" "logs away --rank=0" "attach away" "stop away" "stop away --kill"; do
  # shellcheck disable=SC2086  # words
  stranger $what
done
code=0
FLEETD_SECRET="not the secret of it" from_laptop --via=fleetd --ips=10.78.0.1 touch started >stranger.out 2>&1 || code=$?
[ $code = 2 ] || fail "a stranger's start ended with $code"
expect stranger.out "another secret"
[ ! -e started ] || fail "a stranger's program has run"
# A flood is turned away, and others are served.
ip netns exec "$b" "$flood" 10.78.0.1:6767 900 2000 >flood.out
awk '{ exit !($(NF - 2) > 100) }' flood.out || fail "the flood came in: $(cat flood.out)"
expect fleetd1.out "refused connections from 10.78.0.2"
echo "strangers are kept out"
start here &
client=$!
for rank in 0 1; do soon "rank $rank does not run" test -e "here.$rank"; done
ip -n "$laptop" link set cable down
code=0; wait $client || code=$?
[ $code = 113 ] || fail "the laptop ended with $code instead of 113"
expect here.out "10.78.0.1:6767"
on_node() { ip netns exec "$a" "$fleetrun" "$@"; }
ended() { on_node ls --ips=10.78.0.1,10.78.0.2 >ls.out 2>&1; grep -q "^here *stopped (SIGHUP)" ls.out; }
soon "the job goes on without its client" ended
expect ls.out "^away *running"
echo "the laptop's job ended with its connection, the detached one goes on"

on_node stop away --ips=10.78.0.1 >stop.out 2>&1 || fail "stop ended with $?"
on_node status away --ips=10.78.0.1,10.78.0.2 >status.out
expect status.out "^state *stopped (SIGTERM), detached"
echo "stopped from a node"
