#!/usr/bin/env python3
"""Prints the values of tests/engine/train/swa_test.cc: torch.optim.swa_utils on a network with batch norm.

    python3 scripts/make_golden_swa.py        # needs torch

Linear(5, 7), BatchNorm1d(7), relu, Linear(7, 3), trained for 20 steps by SGD with momentum 0.9. AveragedModel takes the
weights after every fifth step from step 10 on; update_bn() then makes one pass over 4 other batches.
"""
import math

import torch

BATCH, INPUTS, HIDDEN, CLASSES, STEPS = 6, 5, 7, 3, 20


def waves(count, phase):
    return torch.tensor([math.sin(0.7 * i + phase) for i in range(count)], dtype=torch.float64).float()


def images(step):
    return waves(BATCH * INPUTS, 5 + step).view(BATCH, INPUTS)


model = torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN), torch.nn.BatchNorm1d(HIDDEN), torch.nn.ReLU(),
                            torch.nn.Linear(HIDDEN, CLASSES))
with torch.no_grad():
    for i, parameter in enumerate(model.parameters()):
        parameter.copy_(waves(parameter.numel(), 1 + i).view_as(parameter))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
averaged = torch.optim.swa_utils.AveragedModel(model)
for step in range(STEPS):
    label = torch.tensor([(n + step) % CLASSES for n in range(BATCH)])
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images(step)), label).backward()
    optimizer.step()
    if step >= 10 and (step + 1) % 5 == 0:
        averaged.update_parameters(model)
torch.optim.swa_utils.update_bn([images(100 + n) for n in range(4)], averaged)
for name, value in averaged.module.state_dict().items():
    if "num_batches" in name:
        continue
    print(f"{name}: " + ", ".join(f"{x:.7g}" for x in value.flatten()[-4:].tolist()))
averaged.eval()
print("logits: " + ", ".join(f"{x:.7g}" for x in averaged(images(50)).flatten()[-4:].tolist()))
