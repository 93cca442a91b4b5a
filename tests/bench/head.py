#!/usr/bin/env python3
"""The head of a language model with its loss, forward and backward: processor seconds against its three products alone in the same
process and against PyTorch's, and memory. FLEET_TORCH_PYTHON names the interpreter that has PyTorch. A ratio above 1 is in our favour.

Usage: head.py [--rounds=N] [--steps=N] [--threads=N] [--chunk=ROWS] [ROWSxDEPTHxCLASSES...]
# Builds: bench_head_step
"""
import argparse
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from processes import fields, peer, program  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("sizes", nargs="*", default=["1024x576x49152", "1024x768x50257"])
parser.add_argument("--rounds", type=int, default=3, help="pairs of processes")
parser.add_argument("--steps", type=int, default=3, help="steps of a process, of which it gives the median")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--chunk", type=int, default=0)
options = parser.parse_args()
bench = program("bench_head_step")


def measure(size, dtype):
    rows, depth, classes = map(int, size.split("x"))
    ours, theirs = [], []
    for _ in range(options.rounds):
        one = fields([bench, rows, depth, classes, dtype, options.chunk, options.steps], options.threads)
        if isinstance(one, str):
            raise SystemExit(f"head: {bench}: {one}")
        ours.append(one)
        if isinstance(theirs, list):
            other = fields(peer("head_torch.py") + [rows, depth, classes, dtype, options.steps], options.threads)
            theirs = other if isinstance(other, str) else theirs + [other]
    report(f"head_{size}_{dtype}", ours, theirs, rows * depth, depth * classes, 4 if dtype == "float32" else 2)


def median(lines, key):
    return statistics.median(float(line[key]) for line in lines)


def report(name, ours, theirs, hidden, head, width):
    seconds, products = median(ours, "head"), median(ours, "products")
    ratio = statistics.median(float(line["products"]) / float(line["head"]) for line in ours)
    print(f"{name}_products: ratio {ratio:.3f} (ours {seconds * 1e3:.0f} ms, its three products {products * 1e3:.0f} ms)")
    if isinstance(theirs, str):
        print(f"{name}_torch: SKIPPED: {theirs} (FLEET_TORCH_PYTHON)")
        return
    torch = f"PyTorch {theirs[0]['torch']}"
    pairs = statistics.median(float(b["seconds"]) / float(a["head"]) for a, b in zip(ours, theirs))
    print(f"{name}_torch: ratio {pairs:.2f} (ours {seconds * 1e3:.0f} ms, {torch} {median(theirs, 'seconds') * 1e3:.0f} ms)")
    # Both have hidden, head and their gradients.
    base = 2 * (hidden + head) * width
    mine, other = median(ours, "peak"), median(theirs, "peak")
    print(f"{name}_memory: ratio {other / mine:.2f} (ours {mine / 1e6:.0f} MB, {torch} {other / 1e6:.0f} MB, of which inputs and gradients "
          f"{base / 1e6:.0f} MB; our workspace {median(ours, 'workspace') / 1e6:.0f} MB)", flush=True)


def types():
    with open("/proc/cpuinfo") as file:
        return ["float32", "bfloat16"] if "avx512_bf16" in file.read() else ["float32"]


for size in options.sizes:
    for dtype in types():
        measure(size, dtype)
