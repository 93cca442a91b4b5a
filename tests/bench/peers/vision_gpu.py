#!/usr/bin/env python3
"""PyTorch's training step of a network of torchvision or timm on a GPU: the peer of `scripts/gpu_bench.sh families`.

channels_last, float16 (with GradScaler) or bfloat16 by autocast, SGD with momentum in one fused kernel, one made-up batch that
stays on the GPU. Measures the modes one after another, each in its share of --limit, and prints "RESULT " and a JSON object
for each that ran: a mode that fails or takes too long leaves the others' figures.
"""
import argparse
import json
import os
import signal
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("network", help="our name")
parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu only shows that the script works")
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--dtype", choices=["float16", "bfloat16"], default="float16")
parser.add_argument("--modes", default="eager,compile")
parser.add_argument("--seconds", type=float, default=3, help="how long to measure a mode")
parser.add_argument("--limit", type=float, default=45, help="seconds for all modes, with compiling")
options = parser.parse_args()

try:
    import torch
    from vision_networks import make_network
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here")
    sys.exit(0)

gpu = options.device == "cuda"
if gpu and not torch.cuda.is_available():
    print("SKIP: this PyTorch sees no GPU")
    sys.exit(0)
torch.manual_seed(1)
torch.backends.cudnn.benchmark = True
low = getattr(torch, options.dtype)
device = torch.device(options.device)
begun = time.perf_counter()


class OutOfTime(Exception):
    """The mode used up its share of the limit."""


def stop(_signal, _frame):
    raise OutOfTime


def synchronize():
    if gpu:
        torch.cuda.synchronize()


def measure(mode):
    model = make_network(options.network, options.size).train().to(device)
    model = model.to(memory_format=torch.channels_last)
    network = torch.compile(model) if mode == "compile" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=gpu)
    scaler = torch.amp.GradScaler(options.device, init_scale=1024, enabled=low is torch.float16 and gpu)
    shape = (options.batch, 3, options.size, options.size)
    images = torch.randn(shape, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (options.batch,), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, dtype=low):
            loss = torch.nn.functional.cross_entropy(network(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    start = time.perf_counter()
    for _ in range(8 if gpu else 1):
        loss = step()
    synchronize()
    prepared, speeds, chunk = time.perf_counter() - start, [], 5 if gpu else 1
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end or len(speeds) < 2:
        start = time.perf_counter()
        for _ in range(chunk):
            loss = step()
        synchronize()
        speeds.append(options.batch * chunk / (time.perf_counter() - start))
    return {"mode": mode, "images_per_s": statistics.median(speeds), "prepared_s": prepared, "loss": float(loss.detach()),
            "memory_mib": torch.cuda.max_memory_allocated() / 2**20 if gpu else None, "torch": torch.__version__}


signal.signal(signal.SIGALRM, stop)
modes = options.modes.split(",")
for mode in modes:
    left = options.limit - (time.perf_counter() - begun)
    if left < 2:
        print(f"{mode}: no time left")
        break
    signal.setitimer(signal.ITIMER_REAL, left)
    try:
        if gpu:
            torch.cuda.reset_peak_memory_stats()
        print("RESULT " + json.dumps(measure(mode)), flush=True)
    except OutOfTime:
        print(f"{mode}: not within {options.limit:.0f} s", flush=True)
    except Exception as error:  # one mode's failure is not the others'
        print(f"{mode}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
os._exit(0)
