#!/usr/bin/env python3
"""A training step of DeepFM (batch 512, 26 slots of 1,000,001 ids, Adagrad on sparse rows) in one process, in seconds of the clock: against
PyTorch's with sparse EmbeddingBag, in turns, with the same number of threads. FLEET_TORCH_PYTHON names the interpreter that has torch. A
ratio above 1 is in our favour.

Usage: deepfm.py [--rounds=N] [--steps=N] [--threads=N]
# Builds: bench_click_step
"""
import argparse
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from processes import fields, peer, program  # noqa: E402

BATCH = 512
parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=5, help="pairs of processes")
parser.add_argument("--steps", type=int, default=60, help="steps of a process, of which it gives the median")
parser.add_argument("--threads", type=int, default=2, help="of both")
options = parser.parse_args()
bench = program("bench_click_step")
torch = peer("click_torch.py") + [options.threads, options.steps]
ours, theirs = [], []
for number in range(options.rounds):
    one = fields([bench, "deepfm", "--rounds", options.steps], options.threads)
    if isinstance(one, str):
        raise SystemExit(f"deepfm: {bench}: {one}")
    ours.append(one)
    line = f"round {number + 1}: ours {float(one['step']) * 1e3:.2f} ms"
    if isinstance(theirs, list):
        other = fields(torch, options.threads)
        theirs = other if isinstance(other, str) else theirs + [other]
        if isinstance(theirs, list):
            line += f", PyTorch {float(other['step']) * 1e3:.2f} ms"
    print(line, flush=True)

step = statistics.median(float(one["step"]) for one in ours)
print(f"deepfm: {BATCH / step:.0f} samples/s, {step * 1e3:.2f} ms a step, {options.threads} threads")
if isinstance(theirs, str):
    print(f"deepfm_torch: SKIPPED: {theirs} (FLEET_TORCH_PYTHON)")
else:
    ratio = statistics.median(float(b["step"]) / float(a["step"]) for a, b in zip(ours, theirs))
    other = statistics.median(float(one["step"]) for one in theirs)
    print(f"deepfm: ratio {ratio:.3f} against PyTorch {theirs[0]['torch']} ({BATCH / other:.0f} samples/s, {options.threads} threads)")
