#!/usr/bin/env python3
"""One rank of the mlp of tests/bench/pipeline.py in torch.distributed.pipelining (1F1B, Gloo). Rank 0 prints the median time of a step.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=... MASTER_PORT=... pipeline_torch.py MICRO_BATCHES SAMPLES WIDTH LAYERS INPUTS CLASSES
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

MICRO_BATCHES, SAMPLES, WIDTH, LAYERS, INPUTS, CLASSES = map(int, sys.argv[1:7])
WARMUP, STEPS = 2, 6


def layers_of(stage, stages):
    """The layers of a stage: equally many hidden ones, the head with the last."""
    first = stage * LAYERS // stages
    last = (stage + 1) * LAYERS // stages
    modules = []
    for i in range(first, last):
        modules += [nn.Linear(INPUTS if i == 0 else WIDTH, WIDTH), nn.ReLU()]
    if stage == stages - 1:
        modules.append(nn.Linear(WIDTH, CLASSES))
    return nn.Sequential(*modules)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rank, stages = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    module = layers_of(rank, stages)
    stage = PipelineStage(module, rank, stages, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=MICRO_BATCHES, loss_fn=nn.functional.cross_entropy)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    x = torch.randn(MICRO_BATCHES * SAMPLES, INPUTS)
    y = torch.randint(CLASSES, (MICRO_BATCHES * SAMPLES,))
    times = []
    for step in range(WARMUP + STEPS):
        dist.barrier()
        begun = time.monotonic()
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(x)
        elif rank == stages - 1:
            losses = []
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        dist.barrier()
        if step >= WARMUP:
            times.append(time.monotonic() - begun)
    if rank == 0:
        print(statistics.median(times))
    dist.destroy_process_group()


main()
