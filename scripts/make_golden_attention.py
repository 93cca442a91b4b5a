#!/usr/bin/env python3
"""Generates tests/golden/attention.json: outputs and gradients of PyTorch's scaled_dot_product_attention in float64.

    python3 scripts/make_golden_attention.py     # PyTorch 2.5 or later (enable_gqa)

Inputs are not stored: element i of tensor "name" is 2 k / 2^24 - 1 with k = splitmix64(FNV-1a(name) + i) >> 40, in the order
of [batch, tokens, heads, size], as "input" in scripts/make_golden.py. Stored are sums of squares and the first elements.
"""
import json
import os
import sys

from golden_draws import MASK, fnv1a, splitmix64

try:
    import torch
    from torch.nn import functional
except ImportError:
    print("SKIP: torch is not installed here")
    sys.exit(0)


def tensor(name, shape):
    count = 1
    for size in shape:
        count *= size
    values = [2 * (splitmix64((fnv1a(name) + i) & MASK) >> 40) / 2**24 - 1 for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def stored(values):
    values = values.contiguous().flatten()
    return {"squares": float((values * values).sum()), "first": [float(value) for value in values[:8]]}


CASES = [
    {"name": "plain", "batch": 2, "tokens": 19, "heads": 2, "kv_heads": 2, "size": 20, "causal": False, "scale": 0.0},
    {"name": "causal", "batch": 1, "tokens": 33, "heads": 2, "kv_heads": 2, "size": 16, "causal": True, "scale": 0.0},
    {"name": "grouped", "batch": 1, "tokens": 17, "heads": 6, "kv_heads": 2, "size": 8, "causal": True, "scale": 0.5},
]
for case in CASES:
    shapes = {"q": case["heads"], "k": case["kv_heads"], "v": case["kv_heads"], "dy": case["heads"]}
    tensors = {name: tensor(name, (case["batch"], case["tokens"], heads, case["size"])) for name, heads in shapes.items()}
    inputs = [tensors[name].requires_grad_() for name in "qkv"]
    y = functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in inputs), is_causal=case["causal"],
                                                scale=case["scale"] or None, enable_gqa=True).transpose(1, 2)
    y.backward(tensors["dy"])
    case["y"] = stored(y.detach())
    for name, x in zip("qkv", inputs):
        case["d" + name] = stored(x.grad)

path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "attention.json")
with open(path, "w", encoding="utf-8") as file:
    file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in CASES) + "\n]\n")
