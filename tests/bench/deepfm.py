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
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BATCH = 512
parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=5, help="pairs of processes")
parser.add_argument("--steps", type=int, default=60, help="steps of a process, of which it gives the median")
parser.add_argument("--threads", type=int, default=2, help="of both")
options = parser.parse_args()
environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "CUDA_VISIBLE_DEVICES": ""}
bench = os.path.join(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"), "bench_click_step")
torch_python = os.environ.get("FLEET_TORCH_PYTHON") or os.environ.get("FLEET_PYTHON") or "/usr/bin/python3"
peer = [torch_python, os.path.join(ROOT, "tests/bench/peers/click_torch.py"), options.threads, options.steps]


def fields(command):
    """Of the last line "name value name value"; a text if it says why there is none."""
    ended = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    words = (ended.stdout.splitlines() or [""])[-1].split()
    if ended.returncode != 0 or len(words) % 2 or not words or words[0] == "SKIP:":
        return ended.stdout.strip() or (ended.stderr.strip().splitlines() or ["no output"])[-1]
    return dict(zip(words[::2], words[1::2]))


ours, theirs = [], []
for number in range(options.rounds):
    one = fields([bench, "deepfm", "--rounds", options.steps])
    if isinstance(one, str):
        raise SystemExit(f"deepfm: {bench}: {one}")
    ours.append(one)
    line = f"round {number + 1}: ours {float(one['step']) * 1e3:.2f} ms"
    if isinstance(theirs, list):
        other = fields(peer)
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
