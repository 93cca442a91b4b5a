#!/usr/bin/env bash
# Three nodes in network namespaces on one bridge, and what can be wrong between them: fleetrun doctor names the pair
# that is cut, how it is cut, the node that only has docker0, the other program file; --preflight starts no rank then.
# Usage: doctor.sh FLEETRUN
set -euo pipefail
fleetrun=$1
source "$(dirname "$0")/../../../hosts.sh"
command -v iptables >/dev/null || skip "iptables is not installed"
new_switch switch bridge
nodes=()
for i in 0 1 2; do
  new_host doctor$i
  name=doctor$i
  nodes[i]=${!name}
  plug "${nodes[$i]}" eth0 "10.78.0.$((i + 1))/24" "$switch" bridge port$i
done
in_node() { ip netns exec "${nodes[$1]}" "${@:2}"; }
in_node 0 iptables -L -n >/dev/null 2>&1 || skip "no iptables in a namespace"
export FLEET_JOB_SECRET=doctor-test-secret-0123456789 FLEET_RUNTIME_DIR=$folder
unset "${!NCCL_@}"

expect() { grep -qE -- "$2" "$1" || fail "$1 has no '$2'"; }
expect_not() { ! grep -qE -- "$2" "$1" || fail "$1 has '$2'"; }
# on_all CODE ARGUMENTS...: fleetrun with them on all nodes, each of which ends with the code; output in N.out. {} is the node's number.
on_all() {
  local code=$1 pids=() got
  shift
  rm -f ./*.out
  for i in 0 1 2; do
    CUDA_VISIBLE_DEVICES='' in_node $i "$fleetrun" "${@//\{\}/$i}" >"$i.out" 2>&1 &
    pids+=($!)
  done
  for i in 0 1 2; do
    got=0; wait "${pids[$i]}" || got=$?
    [ $got = "$code" ] || fail "node $i ended with $got instead of $code"
  done
}
ips=--ips=10.78.0.1,10.78.0.2,10.78.0.3
wait_options=(--rdzv_timeout=60)

on_all 0 doctor $ips "${wait_options[@]}"
for i in 0 1 2; do
  expect $i.out "ok .*reachability .*every node connects to every other \(6 connections\)"
  expect $i.out "ok .*interface .*node 1 \(10.78.0.2\): eth0 \(10.78.0.2, MTU 1500\) faces the other nodes"
done
echo "nothing wrong: no check failed"

# No packet from node 2 reaches node 1: neither can connect to the other.
in_node 1 iptables -A INPUT -s 10.78.0.3 -j DROP
on_all 117 doctor $ips "${wait_options[@]}"
for i in 0 1 2; do
  expect $i.out "FAIL .*reachability .*node 1 \(10.78.0.2\) to node 2 \(10.78.0.3\): no answer \(timeout\)"
  expect $i.out "FAIL .*reachability .*node 2 \(10.78.0.3\) to node 1 \(10.78.0.2\): no answer \(timeout\)"
  [ "$(grep -c FAIL $i.out)" = 2 ] || fail "node $i has other failures"
done
echo "cut pair: named on every node"
on_all 117 --preflight $ips "${wait_options[@]}" --log_dir=log.{} sh -c ': >started'
for i in 0 1 2; do
  expect $i.out "the job does not start"
  expect $i.out "node 1 \(10.78.0.2\) to node 2 \(10.78.0.3\): no answer"
  expect_not $i.out "was lost|Local start"
done
[ ! -e started ] || fail "a rank has started"
echo "cut pair: --preflight starts nothing"

in_node 1 iptables -F
in_node 1 iptables -A INPUT -p tcp -s 10.78.0.3 -j REJECT --reject-with tcp-reset
on_all 117 doctor $ips "${wait_options[@]}"
expect 0.out "FAIL .*node 2 \(10.78.0.3\) to node 1 \(10.78.0.2\): refused"
in_node 1 iptables -F
in_node 2 iptables -F
in_node 1 iptables -A INPUT -p tcp -s 10.78.0.3 -j REJECT --reject-with icmp-host-unreachable
on_all 117 doctor $ips "${wait_options[@]}"
expect 0.out "FAIL .*node 2 \(10.78.0.3\) to node 1 \(10.78.0.2\): unreachable"
in_node 1 iptables -F
# Small packets pass: the path's MTU is smaller than the interfaces', and nobody says so.
in_node 1 iptables -A INPUT -p tcp -s 10.78.0.3 -m length --length 1000:65535 -j DROP
on_all 117 doctor $ips "${wait_options[@]}"
expect 0.out "FAIL .*node 2 \(10.78.0.3\) to node 1 \(10.78.0.2\): connects, but large packets do not arrive"
expect_not 0.out "FAIL .*node 1 \(10.78.0.2\) to node 2"
in_node 1 iptables -F
ip -n "${nodes[2]}" link set eth0 mtu 1400
on_all 0 doctor $ips "${wait_options[@]}"
expect 0.out "warn .*MTU .*node 2 \(10.78.0.3\) has 1400, node 0 1500"
ip -n "${nodes[2]}" link set eth0 mtu 1500
echo "refused, unreachable, large packets lost, other MTU: told apart"

ip -n "${nodes[2]}" link set eth0 down
ip -n "${nodes[2]}" link set eth0 name docker0
ip -n "${nodes[2]}" link set docker0 up
on_all 117 doctor $ips "${wait_options[@]}"
expect 1.out "FAIL .*interface .*node 2 \(10.78.0.3\): docker0 .* reaches only containers"
on_all 117 --preflight $ips "${wait_options[@]}" --log_dir=log.{} true
expect 2.out "docker0"
ip -n "${nodes[2]}" link set docker0 down
ip -n "${nodes[2]}" link set docker0 name eth0
ip -n "${nodes[2]}" link set eth0 up
echo "only docker0: refused"

for i in 0 1 2; do mkdir node$i; echo '{}' >node$i/job.sh; done
echo '{ }' >node1/job.sh
on_all 117 doctor $ips "${wait_options[@]}" sh node{}/job.sh
expect 2.out "FAIL .*skew .*job.sh is 'hash .* on node 1 \(10.78.0.2\) and 'hash .* on node 0"
on_all 0 doctor $ips "${wait_options[@]}" --allow_skew sh node{}/job.sh
expect 2.out "warn .*skew .*job.sh"
echo "another program file: named"

echo 'exit 0' | tee node0/job.sh node1/job.sh >node2/job.sh
on_all 0 --preflight $ips "${wait_options[@]}" --log_dir=log.{} sh node{}/job.sh
echo "--preflight with nothing wrong: the job ran"
