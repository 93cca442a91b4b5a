#!/usr/bin/env python3
"""PyTorch's DistributedDataParallel over Gloo on ResNet-18: the peer of `scripts/bench.sh links overlap`.

Started by fleetrun on each rank, whose environment has what torch wants. Rank 0 prints "median: 0.812 s a step".
A step is zero_grad, forward, loss, backward with DDP's sums, momentum SGD, as in the job that it is compared with.
"""
import argparse
import os
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--warmup", type=int, default=4)
parser.add_argument("--steps", type=int, default=20)
options = parser.parse_args()

try:
    import torch
    import torch.distributed
    from torch import nn
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (apt-get install python3-torch)")
    sys.exit(0)



class Block(nn.Module):
    """Two convolutions of 3x3 and the shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def resnet18(classes):
    """As torchvision's, which need not be installed."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


torch.set_num_threads(options.threads)
torch.manual_seed(1)
torch.distributed.init_process_group("gloo")
model = resnet18(100).train().to(memory_format=torch.channels_last)
model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.randn((options.batch, 3, options.size, options.size)).to(memory_format=torch.channels_last)
labels = torch.randint(0, 100, (options.batch,))
seconds = []
for step in range(options.warmup + options.steps):
    begun = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    loss.item()
    if step >= options.warmup:
        seconds.append(time.perf_counter() - begun)
torch.distributed.barrier()
if int(os.environ["RANK"]) == 0:
    print(f"median: {statistics.median(seconds):.6f} s a step, torch {torch.__version__}", flush=True)
torch.distributed.destroy_process_group()
