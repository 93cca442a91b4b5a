#!/usr/bin/env python3
"""A step of adafactor on resnet18's parameters, and of muon on vit_tiny's, against the rules of PyTorch and timm, on one core, in processor seconds.
FLEET_TORCH_PYTHON names the interpreter that has them. A ratio above 1 is in our favour.

Usage: optimizers.py [--rounds=N] [--steps=N]
# Builds: bench_optimizer_step
"""
import argparse
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
from processes import fields, peer, program  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=3, help="processes of each, in turns")
parser.add_argument("--steps", type=int, default=9, help="steps of a process, of which it gives the median")
options = parser.parse_args()
bench = program("bench_optimizer_step")


def compare(model, settings, names):
    ours, theirs = [], {name: [] for name in names}
    for _ in range(options.rounds):
        one = fields([bench, model, json.dumps(settings), options.steps])
        if isinstance(one, str):
            raise SystemExit(f"optimizers: {bench}: {one}")
        ours.append(one)
        for name in names:
            if isinstance(theirs[name], list):
                other = fields(peer("optimizers_torch.py") + [model, name, options.steps])
                theirs[name] = other if isinstance(other, str) else theirs[name] + [other]
    seconds = statistics.median(float(line["seconds"]) for line in ours)
    for name, lines in theirs.items():
        title = f"{settings['name']}_{model}_{name.split('.')[0]}"
        if isinstance(lines, str):
            print(f"{title}: SKIPPED: {lines} (FLEET_TORCH_PYTHON)")
            continue
        median = statistics.median(float(line["seconds"]) for line in lines)
        print(f"{title}: ratio {median / seconds:.2f} (ours {seconds * 1e3:.1f} ms, {name} {lines[0]['version']} {median * 1e3:.1f} ms)", flush=True)


compare("resnet18", {"name": "adafactor"}, ["torch.Adafactor", "timm.Adafactor"])
# PyTorch's rule takes matrices only; AdamW updates the rest.
others = ["pos_embed", "cls_token", "patch_embed.*"]
compare("vit_tiny_patch16_224", {"name": "muon", "adamw_parameters": others}, ["torch.Muon", "timm.Muon"])
