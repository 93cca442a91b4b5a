#!/usr/bin/env bash
# Four nodes in network namespaces, of which each loses 30 % of the packets that come. No node is taken for lost meanwhile: the job
# goes on, and when it is stopped all nodes say the same, over IPv4 or IPv6. FLEET_LOSS_ROUNDS (2) of FLEET_LOSS_SECONDS (10) each.
# Usage: packet_loss.sh FLEETRUN
set -euo pipefail
fleetrun=$1
source "$(dirname "$0")/../../../hosts.sh"
command -v nft >/dev/null || skip "nft (nftables) is not installed"
new_switch switch bridge
nodes=()
for i in 0 1 2 3; do
  new_host loss$i
  name=loss$i
  nodes[i]=${!name}
  plug "${nodes[$i]}" eth0 "10.78.0.$((i + 1))/24" "$switch" bridge port$i
  ip -n "${nodes[$i]}" addr add "fd78::$((i + 1))/64" dev eth0 nodad 2>/dev/null || no_ipv6=1
done
ip netns exec "${nodes[0]}" nft list ruleset >/dev/null 2>&1 || skip "nft does not work in a namespace"
lose() {  # lose PERCENT: on each node, of what comes
  local node
  for node in "${nodes[@]}"; do
    ip netns exec "$node" nft 'delete table inet loss' 2>/dev/null || true
    [ "$1" = 0 ] || ip netns exec "$node" nft "add table inet loss {
      chain in { type filter hook input priority 0; iifname eth0 numgen random mod 100 < $1 drop; }; }"
  done
}
message() { sed -n 's/^ *"message": "\(.*\)",$/\1/p' "log.$1/verdict.json"; }

round() {  # round NUMBER IPS: the last node is told to stop
  local i code pids=() end
  rm -rf log.? ready.?
  for i in 0 1 2 3; do
    FLEET_JOB_SECRET=packet-loss-test-secret FLEET_RUNTIME_DIR="$folder/run.$i" CUDA_VISIBLE_DEVICES='' \
      ip netns exec "${nodes[$i]}" "$fleetrun" --ips="$2" --job_id="loss-$1" --log_dir="log.$i" --grace=30 \
      sh -c 'trap "exit 0" TERM; : >ready.$RANK; while :; do sleep 0.1; done' >"$i.out" 2>&1 &
    pids+=($!)
  done
  for i in 0 1 2 3; do await_file ready.$i; done
  lose 30
  end=$((SECONDS + ${FLEET_LOSS_SECONDS:-10}))
  while [ $SECONDS -lt $end ]; do
    for i in 0 1 2 3; do kill -0 "${pids[$i]}" 2>/dev/null || fail "round $1: node $i ended by itself"; done
    sleep 0.2
  done
  kill -TERM "${pids[3]}"
  for i in 0 1 2 3; do
    code=0; wait "${pids[$i]}" || code=$?
    [ $code = 143 ] || fail "round $1: node $i ended with $code instead of 143"
    [ "$(message $i)" = "$(message 3)" ] || fail "round $1: node $i says '$(message $i)', node 3 '$(message 3)'"
  done
  lose 0
  echo "round $1 ($2): all four say '$(message 0)'"
}

for ((n = 1; n <= ${FLEET_LOSS_ROUNDS:-2}; ++n)); do
  ips="10.78.0.1,10.78.0.2,10.78.0.3,10.78.0.4"
  [ $((n % 2)) = 1 ] || [ -n "${no_ipv6:-}" ] || ips="fd78::1,fd78::2,fd78::3,fd78::4"
  round $n "$ips"
done
