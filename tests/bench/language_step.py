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
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from processes import fields, peer, program  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("model", choices=["llama", "gpt2", "bert", "bert_dropout", "bert_pretraining"])
parser.add_argument("--bf16", action="store_true", help="mixed precision in bfloat16; PyTorch's autocast")
parser.add_argument("--rounds", type=int, default=3, help="pairs of processes")
parser.add_argument("--steps", type=int, default=2, help="steps of a process, of which it gives the median")
options = parser.parse_args()
bench = program("bench_language_step")
name = options.model + ("_bf16" if options.bf16 else "")

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
        other = fields(peer("language_torch.py") + [options.model, type_name, options.steps])
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
