#!/usr/bin/env bash
# Two nodes in two network namespaces, started as Slurm's srun and as a Kubernetes indexed Job start them, and over
# IPv6: what those set in the environment and in /etc/hosts is all that fleetrun is told.
# Usage: batch_systems.sh FLEETRUN HELPER
set -euo pipefail
fleetrun=$1 helper=$2
source "$(dirname "$0")/two_nodes.sh"
command -v unshare >/dev/null || skip "unshare is not installed"
mkdir -p "/etc/netns/$a" "/etc/netns/$b"

# in_node NAMESPACE HOST NAME [VARIABLE=VALUE...] -- ARGUMENTS...: fleetrun on a host of that name
in_node() {
  local namespace=$1 host=$2 name=$3 variables=()
  shift 3
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  exec ip netns exec "$namespace" unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' sh "$host" \
    env CUDA_VISIBLE_DEVICES= "${variables[@]}" "$fleetrun" --log_dir="log.$name" --rdzv_timeout=60 "$@" \
    >"$name.out" 2>&1
}
both_end_well() {
  wait "$1" || fail "node 0 ended with $?"
  wait "$2" || fail "node 1 ended with $?"
}

# Slurm. The hosts' own names are loopback addresses, as Debian has it. Two ranks on the first node, one on the other.
printf '127.0.0.1 localhost\n127.0.1.1 node08\n10.77.0.2 node09\n' >"/etc/netns/$a/hosts"
printf '127.0.0.1 localhost\n10.77.0.1 node08\n127.0.1.1 node09\n' >"/etc/netns/$b/hosts"
slurm=(SLURM_JOB_ID=4711 SLURM_STEP_ID=0 'SLURM_STEP_NODELIST=node[08-09]' SLURM_STEP_NUM_NODES=2 SLURM_STEP_NUM_TASKS=2)
(in_node "$a" node08 s0 "${slurm[@]}" SLURM_NODEID=0 -- --nproc_per_node=2 "$helper" store) & first=$!
(in_node "$b" node09 s1 "${slurm[@]}" SLURM_NODEID=1 -- "$helper" store) & second=$!
both_end_well $first $second
expect log.s1/node1/workerlog.0 "sum 5"
expect log.s0/node0/environment.log "job_id: slurm-4711.0"
echo "srun: met"

# Kubernetes. The second pod comes first, before the name of pod 0 is known.
printf '127.0.0.1 localhost\n10.77.0.1 train-0.train.ns.svc.cluster.local train-0\n' >"/etc/netns/$a/hosts"
printf '127.0.0.1 localhost\n10.77.0.2 train-1.train.ns.svc.cluster.local train-1\n' >"/etc/netns/$b/hosts"
pod=(KUBERNETES_SERVICE_HOST=10.96.0.1 PADDLE_NNODES=2)
(in_node "$b" train-1 k1 "${pod[@]}" JOB_COMPLETION_INDEX=1 -- "$helper" store) & second=$!
await k1.out "waiting for the name train-0.train.ns.svc.cluster.local"
echo '10.77.0.1 train-0.train.ns.svc.cluster.local' >>"/etc/netns/$b/hosts"
(in_node "$a" train-0 k0 "${pod[@]}" JOB_COMPLETION_INDEX=0 -- --nproc_per_node=2 "$helper" store) & first=$!
both_end_well $first $second
expect log.k1/workerlog.0 "sum 5"
echo "indexed job: met"

# IPv6, with the number of ranks in the list.
ip -n "$a" addr add fd77::1/64 dev cable nodad && ip -n "$b" addr add fd77::2/64 dev cable nodad || skip "no IPv6 here"
list='[fd77::1]:2,[fd77::2]:3'
(in_node "$a" one v0 -- --ips="$list" "$helper" store) & first=$!
(in_node "$b" two v1 -- --ips="$list" "$helper" store) & second=$!
both_end_well $first $second
expect log.v1/workerlog.2 "sum 30"
expect log.v0/endpoints.log '^\[fd77::2\]:6072$'
echo "IPv6: met"
