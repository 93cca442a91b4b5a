#!/usr/bin/env python3
"""PyTorch's shardings on CPUs over Gloo, for tests/bench/sharding.py: an mlp with Adam on made-up images.

    sharding_torch.py VARIANT RANKS WIDTH LAYERS CLASSES PIXELS BATCH STEPS

VARIANT: whole (DistributedDataParallel), stage1 (with ZeroRedundancyOptimizer), stage2 (FullyShardedDataParallel that keeps parameters
between forward and backward), stage3 (FullyShardedDataParallel). Prints "peak BYTES step SECONDS": the largest VmHWM of a rank, the
median step of rank 0. "SKIP REASON" if this interpreter cannot do it.
"""
import datetime
import functools
import os
import statistics
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as multiprocessing
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    from torch.distributed.fsdp.wrap import lambda_auto_wrap_policy
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel
except ImportError as error:
    print(f"SKIP {sys.executable} has no PyTorch with FSDP: {error}")
    sys.exit(0)


def peak_memory():
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def network(width, layers, classes, pixels):
    parts = [torch.nn.Flatten()]
    for layer in range(layers):
        parts.append(torch.nn.Sequential(torch.nn.Linear(width if layer else pixels, width), torch.nn.ReLU()))
    return torch.nn.Sequential(*parts, torch.nn.Linear(width, classes))


def wrapped(variant, model):
    """The model and its optimizer."""
    if variant in ("whole", "stage1"):
        model = DistributedDataParallel(model, bucket_cap_mb=8, gradient_as_bucket_view=True)
        if variant == "whole":
            return model, torch.optim.Adam(model.parameters(), lr=1e-4)
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-4, parameters_as_bucket_view=True)
    strategy = ShardingStrategy.FULL_SHARD if variant == "stage3" else ShardingStrategy.SHARD_GRAD_OP
    # Two layers, 8 MB, at a time, as fleetrun's segments.
    blocks = list(model.children())
    pairs = [torch.nn.Sequential(*blocks[i:i + 2]) for i in range(0, len(blocks), 2)]
    policy = functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda module: any(module is pair for pair in pairs))
    model = FullyShardedDataParallel(torch.nn.Sequential(*pairs), sharding_strategy=strategy, auto_wrap_policy=policy, device_id=torch.device("cpu"))
    return model, torch.optim.Adam(model.parameters(), lr=1e-4)


def train(rank, variant, ranks, width, layers, classes, pixels, batch, steps, store, results):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=120))
    model, optimizer = wrapped(variant, network(width, layers, classes, pixels))
    torch.manual_seed(2 + rank)
    x, label = torch.randn(batch, pixels), torch.randint(classes, (batch,))
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x), label).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    results.put((peak_memory(), statistics.median(times[1:])))
    dist.barrier()
    dist.destroy_process_group()


def main():
    variant, numbers = sys.argv[1], [int(text) for text in sys.argv[2:]]
    ranks = numbers[0]
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(train, (variant, *numbers, os.path.join(folder, "store"), results), nprocs=ranks)
    got = [results.get() for _ in range(ranks)]
    print(f"peak {max(peak for peak, _ in got)} step {statistics.median(step for _, step in got):.6f}")


if __name__ == "__main__":
    main()
