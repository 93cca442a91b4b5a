#!/usr/bin/env python3
"""Generates tests/golden/flight_gloo_*: dumps of PyTorch's flight recorder that tests/control/node/flight_dump_test.cc reads.

    python3 scripts/make_flight_dumps.py [FOLDER]

Three ranks with Gloo; rank 1 does not enter the fourth all_reduce.
"""
import os
import sys
import tempfile
import time

os.environ["TORCH_FR_BUFFER_SIZE"] = "20"

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 3


def train(rank, store, folder):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    for _ in range(3):
        dist.all_reduce(torch.ones(16, 64))
    pending = dist.all_reduce(torch.ones(16, 64), async_op=True) if rank != 1 else None
    time.sleep(1)
    # Without stacks, which would contain paths of this machine.
    dump = torch._C._distributed_c10d._dump_fr_trace(True, False, False)
    with open(os.path.join(folder, f"flight_gloo_{rank}"), "wb") as file:
        file.write(dump)
    time.sleep(1)
    if pending is None:
        dist.all_reduce(torch.ones(16, 64))
    else:
        pending.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    golden = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "tests", "golden")
    with tempfile.TemporaryDirectory() as temporary:
        mp.spawn(train, (os.path.join(temporary, "store"), golden), nprocs=RANKS)
