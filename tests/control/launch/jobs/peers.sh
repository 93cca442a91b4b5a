#!/usr/bin/env bash
# Unmodified programs of other ecosystems under fleetrun, each with a real collective: on one node, and on two "nodes" of this
# machine. Usage: peers.sh FLEETRUN PEER; ends with 77, saying why, where the peer is not installed.
set -euo pipefail
fleetrun=$1 peer=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export CUDA_VISIBLE_DEVICES=
skip() { echo "SKIP: $*"; exit 77; }
fail() { echo "FAILED: $*"; tail -n 30 ./*.out log*/workerlog.*; exit 1; }
# need_module PYTHON MODULE VARIABLE
need_module() {
  [ -n "$1" ] && "$1" -c "import $2" 2>/dev/null || skip "no $2 for '$1'; $3 names a python that has it"
}
# one_node RANKS ARGUMENTS... and two_nodes RANKS-A-NODE ARGUMENTS...: every rank must print the line in $expected
expect() { grep -qx -- "$expected" "$1" || fail "$1 has no '$expected'"; }
one_node() {
  local ranks=$1; shift
  timeout 240 "$fleetrun" --nproc_per_node="$ranks" "$@" >one.out 2>&1 || fail "one node ended with $?"
  for ((rank = 0; rank < ranks; ++rank)); do expect "log/workerlog.$rank"; done
  echo "$peer met on one node"
}
two_nodes() {
  local ranks=$1 port=$((12000 + $$ % 17000)) nodes=(); shift
  for node in 1 2; do
    timeout 240 "$fleetrun" --ips=127.0.0.1,127.0.0.2 --host=127.0.0.$node --rdzv_port=$port --start_port=0 \
      --log_dir=log$node --nproc_per_node="$ranks" "$@" >node$node.out 2>&1 & nodes+=($!)
  done
  for node in "${nodes[@]}"; do wait "$node" || fail "a node ended with $?"; done
  for node in 1 2; do
    for ((rank = 0; rank < ranks; ++rank)); do expect "log$node/workerlog.$rank"; done
  done
  echo "$peer met on two nodes"
}

# The same by the name torchrun: its console and logs; and what @record writes is the verdict.
called_torchrun() {
  export PYTHON_EXEC=$python
  ln -s "$fleetrun" torchrun
  timeout 240 ./torchrun --nproc-per-node 3 --log-dir logs --tee 3 peer.py >one.out 2>&1 || fail "torchrun ended with $?"
  for rank in 0 1 2; do
    expected="\[default$rank\]:mean 2.0" expect one.out
    expected="mean 2.0" expect logs/none_*/attempt_0/$rank/stdout.log
  done
  cat >fails.py <<'PYTHON'
import os
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    if os.environ["RANK"] == "1":
        {}["missing_key"]

main()
PYTHON
  ! timeout 240 ./torchrun --nproc-per-node 2 fails.py >fails.out 2>&1 || fail "a KeyError is no failure"
  grep -q "rank 1 of 2 exited with 1: KeyError: 'missing_key'" fails.out || fail "the exception is not told"
  echo "$peer met under the name torchrun"
}

case $peer in
  torch)
    python=${FLEET_PYTHON:-/usr/bin/python3}
    need_module "$python" torch FLEET_PYTHON
    cat >peer.py <<'PYTHON'
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", init_method="env://")
model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
model(torch.ones(1, 1) * (dist.get_rank() + 1)).backward()
print("mean", next(model.parameters()).grad.item(), flush=True)
dist.barrier()
PYTHON
    expected="mean 2.0" one_node 3 "$python" peer.py
    expected="mean 2.5" two_nodes 2 --dialect torch "$python" peer.py
    called_torchrun
    ;;
  paddle)
    python=${FLEET_PADDLE_PYTHON:-python3}
    need_module "$python" paddle FLEET_PADDLE_PYTHON
    cat >peer.py <<'PYTHON'
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
value = paddle.to_tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)
print("sum", value.item(), flush=True)
PYTHON
    expected="sum 3.0" one_node 2 "$python" peer.py
    expected="sum 10.0" two_nodes 2 "$python" peer.py
    ;;
  jax)
    python=${FLEET_JAX_PYTHON:-python3}
    need_module "$python" jax FLEET_JAX_PYTHON
    cat >peer.py <<'PYTHON'
import jax
jax.distributed.initialize()
import jax.numpy as jnp
from jax.experimental import multihost_utils

values = multihost_utils.process_allgather(jnp.array([jax.process_index() + 1.0]))
print("sum", float(values.sum()), flush=True)
PYTHON
    expected="sum 3.0" one_node 2 --dialect jax "$python" peer.py
    expected="sum 10.0" two_nodes 2 --dialect jax "$python" peer.py
    ;;
  mlx)
    python=${FLEET_MLX_PYTHON:-python3}
    need_module "$python" mlx.core FLEET_MLX_PYTHON
    cat >peer.py <<'PYTHON'
import mlx.core as mx

world = mx.distributed.init(strict=True, backend="ring")
value = mx.distributed.all_sum(mx.array([world.rank() + 1.0]), stream=mx.cpu)
print("sum", value.item(), flush=True)
PYTHON
    expected="sum 3.0" one_node 2 --dialect mlx "$python" peer.py
    expected="sum 10.0" two_nodes 2 --dialect mlx "$python" peer.py
    ;;
  mpich)
    compiler=${FLEET_MPICC:-mpicc.mpich}
    command -v "$compiler" >/dev/null || skip "$compiler is not installed (Debian: libmpich-dev)"
    cat >peer.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, value, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  value = rank + 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("sum %d\n", sum);
  return MPI_Finalize();
}
C
    "$compiler" peer.c -o peer 2>compile.out || skip "$compiler does not compile: $(head -n 1 compile.out)"
    expected="sum 6" one_node 3 --dialect mpich ./peer
    expected="sum 6" one_node 3 --bind-to none ./peer  # an option of mpirun: by its libmpich
    expected="sum 10" two_nodes 2 --dialect mpich ./peer
    ;;
  horovod)
    python=${FLEET_HOROVOD_PYTHON:-python3}
    need_module "$python" horovod.torch FLEET_HOROVOD_PYTHON
    cat >peer.py <<'PYTHON'
import horovod.torch as hvd
import torch

for _ in range(2):  # what the first has left does not disturb the second
    hvd.init()
    value = hvd.allreduce(torch.tensor([hvd.rank() + 1.0]), op=hvd.Sum)
    hvd.shutdown()
print("sum", value.item(), flush=True)
PYTHON
    expected="sum 3.0" one_node 2 --dialect horovod "$python" peer.py
    expected="sum 10.0" two_nodes 2 --dialect horovod "$python" peer.py
    ;;
  *) echo "unknown peer $peer"; exit 2 ;;
esac
