#!/usr/bin/env python3
"""PyTorch's ResNet-50 training step on the CPU: the peer of `scripts/bench.sh cpu_resnet50_torch`.

Prints one line a layout, "torch 2.1.0 nchw float32 threads=2 batch=16: 5.08 images/s", and last "best: 6.05 images/s".
A step is zero_grad, forward, loss, backward, momentum SGD; the median of the timed steps counts.
"""
import argparse
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--threads", type=int, default=0, help="0: all cores this process may use")
parser.add_argument("--warmup", type=int, default=2)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--bf16", action="store_true", help="bfloat16 autocast")
parser.add_argument("--layouts", default="nchw,channels_last")
options = parser.parse_args()

try:
    import os

    import torch
    import torchvision
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (apt-get install python3-torch python3-torchvision)")
    sys.exit(0)

threads = options.threads or len(os.sched_getaffinity(0))
torch.set_num_threads(threads)
torch.manual_seed(1)
best = 0.0
for layout in options.layouts.split(","):
    memory_format = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    model = torchvision.models.resnet50().train().to(memory_format=memory_format)
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    shape = (options.batch, 3, options.size, options.size)
    images = torch.randn(shape).to(memory_format=memory_format)
    labels = torch.randint(0, 1000, (options.batch,))
    seconds = []
    for step in range(options.warmup + options.steps):
        begun = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bf16):
            loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        if step >= options.warmup:
            seconds.append(time.perf_counter() - begun)
    speed = options.batch / statistics.median(seconds)
    best = max(best, speed)
    dtype = "bfloat16" if options.bf16 else "float32"
    print(
        f"torch {torch.__version__} {layout} {dtype} threads={threads} batch={options.batch}: {speed:.2f} images/s",
        flush=True,
    )
print(f"best: {best:.2f} images/s")
