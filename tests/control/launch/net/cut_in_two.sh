#!/usr/bin/env bash
# Five nodes in network namespaces on two switches. The cable between these is pulled: whichever part has the majority goes on, with the
# rendezvous's host or without it, and the other ends with 113.
# Usage: cut_in_two.sh FLEETRUN
set -euo pipefail
fleetrun=$1
source "$(dirname "$0")/../../../hosts.sh"
new_switch switches near far
ip -n "$switches" link add cable type veth peer name elbac || skip "no veth here"
ip -n "$switches" link set cable master near
ip -n "$switches" link set elbac master far up
nodes=()
for n in 1 2 3 4 5; do
  new_host node$n
  name=node$n
  nodes[n]=${!name}
  plug "${nodes[$n]}" eth 10.78.0.$n/24 "$switches" near port$n
done

node() {  # node NUMBER: the same line on all
  CUDA_VISIBLE_DEVICES= exec ip netns exec "${nodes[$1]}" "$fleetrun" --ips="10.78.0.[1-5]" --nnodes=2:5 \
    --elastic_timeout=10 --heartbeat_timeout=3 --grace=1 --log_dir="log.$1" --rdzv_timeout=60 \
    sh -c ': >"up.$FLEET_GENERATION.$RANK"; echo "generation $FLEET_GENERATION, rank $RANK of $WORLD_SIZE" >>seen
           test "$FLEET_GENERATION" = 1 || exit 0; exec sleep 1000' >"$1.out" 2>&1
}

# cut NEAR NODE...: NEAR of the five stay with the host, on its switch; these nodes go on.
cut() {
  local near=$1 n code
  shift
  mkdir "$folder/$near" && cd "$folder/$near"
  ip -n "$switches" link set cable up
  declare -A pid=()
  for n in 1 2 3 4 5; do
    ip -n "$switches" link set port$n master "$([ $n -le "$near" ] && echo near || echo far)"
    (node $n) & pid[$n]=$!
  done
  for n in 0 1 2 3 4; do
    await_file up.1.$n
  done
  ip -n "$switches" link set cable down
  for n in 1 2 3 4 5; do
    code=0; wait "${pid[$n]}" || code=$?
    case " $* " in
      *" $n "*) [ $code = 0 ] || fail "node $n of the majority ended with $code" ;;
      *) [ $code = 113 ] || fail "node $n of the minority ended with $code instead of 113" ;;
    esac
  done
  [ "$(sort seen | tail -n +6)" = "$(for n in 0 1 2; do echo "generation 2, rank $n of 3"; done)" ] || fail "$(sort seen)"
}

cut 3 1 2 3
echo "the host went on with the majority"
cut 2 3 4 5
expect 3.out "this node now hosts the rendezvous"
echo "the majority went on without the host"
