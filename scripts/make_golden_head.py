#!/usr/bin/env python3
"""Generates tests/golden/linear_cross_entropy.json: the loss and the gradients of PyTorch for a head that is an embedding, too.

    python3 scripts/make_golden_head.py       # needs torch

The network: hidden = tanh(head[ids]), logits = hidden head^T, loss = sum of weight * cross entropy / sum of the weights that count. head
and weights are stored; PyTorch computes in float64 from their float32 values.
"""
import json
import os

import torch
from torch.nn import functional

CLASSES, DEPTH, ROWS = 23, 6, 12
random = torch.Generator().manual_seed(7)
head = (torch.rand(CLASSES, DEPTH, generator=random) * 2 - 1).requires_grad_()
ids = torch.randint(0, CLASSES, (ROWS,), generator=random)
labels = torch.randint(0, CLASSES, (ROWS,), generator=random)
labels[[2, 7]] = -100
weights = torch.rand(ROWS, generator=random)
weights[[4, 11]] = 0

exact = head.detach().double().requires_grad_()
hidden = torch.tanh(functional.embedding(ids, exact))
hidden.retain_grad()
losses = functional.cross_entropy(hidden @ exact.T, labels, reduction="none", ignore_index=-100)
counts = (labels != -100) * weights.double()
loss = (losses * counts).sum() / counts.sum()
loss.backward()

values = {
    "torch": torch.__version__.split("+")[0], "classes": CLASSES, "depth": DEPTH, "rows": ROWS,
    "head": head.flatten().tolist(), "ids": ids.tolist(), "labels": labels.tolist(), "weights": weights.tolist(),
    "denominator": counts.sum().item(), "loss": loss.item(),
    "losses": (losses * (counts != 0)).tolist(),
    "dhead": exact.grad.flatten().tolist(), "dhidden": hidden.grad.flatten().tolist(),
}
path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "linear_cross_entropy.json")
with open(path, "w") as file:
    json.dump(values, file, indent=1)
    file.write("\n")
