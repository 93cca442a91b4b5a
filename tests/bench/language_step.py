#!/usr/bin/env python3
"""A whole training step of a language model on one thread (AdamW; 4 x 256 tokens, BERT 8 x 128), in processor seconds: against the
products of its linear operations and head alone in the same process, and against PyTorch's step of transformers' network, in turns.
FLEET_TORCH_PYTHON names the interpreter that has both. A ratio above 1 is in our favour.

Usage: language_step.py [--bf16] [--rounds=N] [--steps=N] llama|gpt2|bert|bert_dropout|bert_pretraining
# Builds: bench_language_step
"""
import argparse
import os
import statistics
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
parser = argparse.ArgumentParser()
parser.add_argument("model", choices=["llama", "gpt2", "bert", "bert_dropout", "bert_pretraining"])
parser.add_argument("--bf16", action="store_true", help="mixed precision in bfloat16; PyTorch's autocast")
parser.add_argument("--rounds", type=int, default=3, help="pairs of processes")
parser.add_argument("--steps", type=int, default=2, help="steps of a process, of which it gives the median")
options = parser.parse_args()
environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
bench = os.path.join(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"), "bench_language_step")
torch_python = os.environ.get("FLEET_TORCH_PYTHON") or os.environ.get("FLEET_PYTHON") or "/usr/bin/python3"
name = options.model + ("_bf16" if options.bf16 else "")


def fields(command):
    """Of the last line "name value name value"; a text if it says why there is none."""
    ended = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    words = (ended.stdout.splitlines() or [""])[-1].split()
    if ended.returncode != 0 or len(words) % 2 or not words or words[0] == "SKIP:":
        return ended.stdout.strip() or (ended.stderr.strip().splitlines() or ["no output"])[-1]
    return dict(zip(words[::2], words[1::2]))


ours, theirs = [], []
for number in range(options.rounds):
    one = fields([bench, options.model, "--rounds", options.steps] + ["--bf16"] * options.bf16)
    if isinstance(one, str):
        if one.startswith("SKIP"):
            print(one)
            raise SystemExit(0)
        raise SystemExit(f"{name}: {bench}: {one}")
    ours.append(one)
    line = f"round {number + 1}: ours {one['step']} s, its products {one['products']} s"
    if isinstance(theirs, list):
        type_name = "bfloat16" if options.bf16 else "float32"
        other = fields([torch_python, os.path.join(ROOT, "tests/bench/peers/language_torch.py"), options.model, type_name, options.steps])
        theirs = other if isinstance(other, str) else theirs + [other]
        if isinstance(theirs, list):
            line += f", PyTorch {other['step']} s"
    print(line, flush=True)


def report(peer, others, key):
    ratio = statistics.median(float(b[key]) / float(a["step"]) for a, b in zip(ours, others))
    mine, other = (statistics.median(float(line[k]) for line in lines) for lines, k in ((ours, "step"), (others, key)))
    print(f"{name}: ratio {ratio:.3f} (ours {mine:.2f} s, {peer} {other:.2f} s)")


report("its products alone", ours, "products")
if isinstance(theirs, str):
    print(f"{name}_torch: SKIPPED: {theirs} (FLEET_TORCH_PYTHON)")
else:
    report(f"PyTorch {theirs[0]['torch']}", theirs, "step")
