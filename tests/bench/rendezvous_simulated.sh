#!/usr/bin/env bash
# How long the nodes of a large job take to meet (fleetrun simulate: 8 ranks a node, a connection each, both ends on this
# machine), against the same connections over gRPC alone: a stream on each, one small message each way. Medians over
# interleaved runs; ratio: theirs / ours. The first run of each size also measures the idle job: the host's share of a core.
#
#   tests/bench/rendezvous_simulated.sh [RUNS [RANKS...]]     default 3, and 1000 10000 100000; TLS up to 10000
# Builds: fleetrun bench_grpc_connections
set -euo pipefail
runs=${1:-3}
sizes=("${@:2}")
[ ${#sizes[@]} -gt 0 ] || sizes=(1000 10000 100000)
tls_up_to=10000 processes=4
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=$(realpath "${FLEET_BIN:-$root/build/release/bin}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# measure RANKS IDLE: adds a line to ours.plain, grpc.plain and, where TLS is measured too, ours.tls, grpc.tls.
measure() {
  local ranks=$1 nodes=$((($1 + 7) / 8)) way ways=(plain)
  local options=(--ranks "$ranks" --processes "$processes" --idle "$2")
  [ "$ranks" -gt "$tls_up_to" ] || ways+=(tls) options+=(--tls)
  "$bin/fleetrun" simulate "${options[@]}" >simulated
  sed -n 's/^joined: .* last \([0-9.]*\) s;.*/\1/p' simulated >joined
  [ "$(wc -l <joined)" -eq ${#ways[@]} ] || { cat simulated; echo "rendezvous_simulated: no time to join" >&2; exit 1; }
  [ "$2" = 0 ] || grep '^idle:' simulated >idle
  sed -n 1p joined >>ours.plain
  sed -n 2p joined >>ours.tls
  for way in "${ways[@]}"; do "$bin/bench_grpc_connections" "$nodes" "$processes" "$way" >>"grpc.$way"; done
}

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# report NAME WAY
report() {
  awk -v name="rendezvous_simulated_$1" -v ours="$(median "ours.$2")" -v theirs="$(median "grpc.$2")" \
    'BEGIN { printf "%s: ratio %.2f (ours %.3f s, gRPC alone %.3f s)\n", name, theirs / ours, ours, theirs }'
}

for ranks in "${sizes[@]}"; do
  rm -f ours.* grpc.*
  for ((run = 0; run < runs; ++run)); do measure "$ranks" $((run == 0 ? 10 : 0)); done
  grep -h '^server:' simulated | sed "s/^/rendezvous_simulated_$ranks: /"
  sed "s/^idle:/rendezvous_simulated_${ranks}_idle:/" idle
  report "$ranks" plain
  [ ! -s ours.tls ] || report "${ranks}_tls" tls
done
