#!/usr/bin/env python3
"""Prints the values of tests/engine/train/sam_test.cc: 20 steps of sharpness-aware minimisation in PyTorch.

    python3 scripts/make_golden_sam.py        # needs torch

The network is two linear layers with relu between them and softmax cross entropy, trained by SGD with momentum 0.9 and
weight decay 0.01.
SAM is written as in https://github.com/davda54/sam: first_step() and second_step().
"""
import math

import torch

BATCH, INPUTS, HIDDEN, CLASSES, STEPS = 6, 5, 7, 3, 20


def waves(count, phase):
    return torch.tensor([math.sin(0.7 * i + phase) for i in range(count)], dtype=torch.float64).float()


def trained(rho, adaptive):
    parameters = [torch.nn.Parameter(value) for value in (
        waves(INPUTS * HIDDEN, 1).view(HIDDEN, INPUTS), waves(HIDDEN, 2),
        waves(HIDDEN * CLASSES, 3).view(CLASSES, HIDDEN), waves(CLASSES, 4))]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)
    losses = []
    for step in range(STEPS):
        x = waves(BATCH * INPUTS, 5 + step).view(BATCH, INPUTS)
        label = torch.tensor([(n + step) % CLASSES for n in range(BATCH)])

        def loss():
            hidden = torch.relu(torch.nn.functional.linear(x, parameters[0], parameters[1]))
            return torch.nn.functional.cross_entropy(torch.nn.functional.linear(hidden, parameters[2], parameters[3]), label)

        optimizer.zero_grad()
        first = loss()
        first.backward()
        losses.append(first.item())
        with torch.no_grad():
            norm = torch.stack([((p.abs() if adaptive else 1) * p.grad).norm() for p in parameters]).norm()
            old = [p.clone() for p in parameters]
            for p in parameters:
                p.add_((p * p if adaptive else 1) * p.grad * (rho / (norm + 1e-12)))
        optimizer.zero_grad()
        loss().backward()
        with torch.no_grad():
            for p, before in zip(parameters, old):
                p.copy_(before)
        optimizer.step()
    return losses[-1], [p.detach().flatten()[:4].tolist() for p in parameters]


for rho, adaptive in ((0, False), (0.05, False), (0.5, True)):
    loss, values = trained(rho, adaptive)
    print(f"rho {rho}, adaptive {adaptive}: loss {loss:.7g}")
    for parameter in values:
        print("  " + ", ".join(f"{value:.7g}" for value in parameter))
