#!/usr/bin/env bash
# Two nodes on one machine whose ranks use every core four times over: no node may be taken for lost. Prints the
# longest silence that each heard of the other. FLEET_LOAD_SECONDS (20): how long; minutes where it matters.
# FLEET_LOAD_USER: run as that user, who may not raise priorities. Usage: heartbeats.sh FLEETRUN
set -euo pipefail
fleetrun=$(realpath "$1")
seconds=${FLEET_LOAD_SECONDS:-20}
folder=$(mktemp -d)
as=()
if [ -n "${FLEET_LOAD_USER:-}" ]; then
  as=(setpriv --reuid="$FLEET_LOAD_USER" --regid="$FLEET_LOAD_USER" --clear-groups)
  chmod 777 "$folder"
fi
nodes=()
clean_up() {
  [ ${#nodes[@]} = 0 ] || kill -9 "${nodes[@]}" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT
cd "$folder"
ranks=$((2 * $(nproc)))
port=$((20000 + $$ % 10000))
for node in 1 2; do
  FLEET_RUNTIME_DIR="$folder/run.$node" CUDA_VISIBLE_DEVICES= "${as[@]}" "$fleetrun" --ips=127.0.0.1,127.0.0.2 \
    --host=127.0.0.$node --nproc_per_node=$ranks --log_dir="$folder/log.$node" --rdzv_port=$port --grace=5 \
    --start_port=$((port + 1 + 100 * node)) --log_level=DEBUG --job_id="load-$$" \
    sh -c ': >"ready.$RANK"; while :; do :; done' >"$folder/node.$node.out" 2>&1 &
  nodes+=($!)
done
fail() { echo "FAILED: $*"; tail -n 20 node.*.out; exit 1; }
for ((i = 0; i < 600; ++i)); do
  [ "$(find . -maxdepth 1 -name 'ready.*' | wc -l)" = $((2 * ranks)) ] && break
  sleep 0.1
done
[ "$(find . -maxdepth 1 -name 'ready.*' | wc -l)" = $((2 * ranks)) ] || fail "the ranks did not start"
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ]; do
  for pid in "${nodes[@]}"; do kill -0 "$pid" 2>/dev/null || fail "a node ended by itself"; done
  sleep 0.5
done
kill -TERM "${nodes[0]}"
for pid in "${nodes[@]}"; do
  code=0
  wait "$pid" || code=$?
  [ $code = 143 ] || fail "a node ended with $code instead of 143"
done
nodes=()
for node in 1 2; do
  gap=$(sed -n 's/.*longest silence was \([0-9]*\) ms.*/\1/p' node.$node.out | tail -n 1)
  [ -n "$gap" ] || fail "node $node does not say how long the host was silent"
  echo "node $node: $ranks busy ranks, $(nproc) cores, $seconds s: the host's longest silence was $gap ms of 15000 ms"
done
