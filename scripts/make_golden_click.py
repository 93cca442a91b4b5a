#!/usr/bin/env python3
"""Generates tests/golden/clicks.json: scikit-learn's AUC and log loss, and PyTorch's training of models of clicks.

    python3 scripts/make_golden_click.py    # needs torch and scikit-learn

tests/engine/models/metrics_clicks_test.cc and tests/engine/train/click_golden_test.cc draw the same cases, rows and weights: values follow
from names (golden_draws.py, golden_tensors.py). PyTorch computes in float64.
"""
import json
import math
import os

import numpy
import torch
from sklearn import metrics as sklearn
from torch import nn

from golden_draws import draws
from golden_tensors import tensor

CASES = 30
SLOTS, LENGTH, DENSE, IDS = 26, 2, 13, 400
BATCH, STEPS = 16, 100


def auc_case(i):
    """Logits (float32) and labels: ties, a narrow range, rare positives."""
    samples = 200 + 150 * i
    kind = i % 5
    logit = (draws(f"auc.logit{i}", samples) >> numpy.uint64(44)).astype(numpy.float64) / 2**20  # 0 to 1
    if kind == 0:
        logit = numpy.floor(logit * 12)  # ties
    scale, shift = [(0.5, -3), (6, -3), (0.02, -0.01), (4, -5), (16, -8)][kind]
    logit = (logit * scale + shift).astype(numpy.float32)
    chance = (draws(f"auc.label{i}", samples) >> numpy.uint64(44)).astype(numpy.float64) / 2**20
    threshold = [0.3, 0.5, 0.5, 0.02, 0.5][kind]
    label = chance < threshold * (0.5 + (logit - logit.min()) / (logit.max() - logit.min()))
    label[0], label[1] = False, True
    return logit, label


def auc_cases():
    cases = []
    for i in range(CASES):
        logit, label = auc_case(i)
        wide = logit.astype(numpy.float64)
        probability = 1 / (1 + numpy.exp(-wide))
        cases.append({"auc": sklearn.roc_auc_score(label, wide), "logloss": sklearn.log_loss(label, probability),
                      "calibration": probability.mean() / label.mean(), "samples": len(label), "clicks": int(label.sum())})
    return cases


class Rows:
    """Those of all steps: each slot has one id, or two, or none."""

    def __init__(self, steps):
        count = steps * BATCH * SLOTS
        first = (draws("clicks.first", count) % numpy.uint64(IDS)).astype(numpy.int64)
        second = (draws("clicks.second", count) % numpy.uint64(IDS)).astype(numpy.int64)
        kind = draws("clicks.kind", count) % numpy.uint64(8)  # 0: none; 1 and 2: two ids
        first[kind == 0] = -1
        second[(kind == 0) | (kind > 2)] = -1
        self.ids = torch.from_numpy(numpy.stack([first, second], 1).reshape(steps, BATCH, SLOTS, LENGTH))
        dense = (draws("clicks.dense", steps * BATCH * DENSE) >> numpy.uint64(40)).astype(numpy.float64) / 2**24
        self.dense = torch.from_numpy(dense.astype(numpy.float32).reshape(steps, BATCH, DENSE)).double()
        label = draws("clicks.label", steps * BATCH) % numpy.uint64(4) == 0
        self.label = torch.from_numpy(label.astype(numpy.float64).reshape(steps, BATCH, 1))


class Bags(nn.Module):
    """EmbeddingBag over lists that are padded with -1."""

    def __init__(self, dim, sparse):
        super().__init__()
        self.table = nn.EmbeddingBag(IDS, dim, mode="sum", sparse=sparse)

    @property
    def weight(self):
        return self.table.weight

    def forward(self, ids):  # [..., L]
        lists = ids.reshape(-1, ids.shape[-1])
        counts = (lists >= 0).sum(1)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)[:-1]])
        return self.table(lists[lists >= 0], offsets).reshape(*ids.shape[:-1], -1)


def layers(inputs, outputs):
    return nn.ModuleList(nn.Linear(a, b) for a, b in zip([inputs] + outputs[:-1], outputs))


def through(modules, x):
    for module in modules:
        x = torch.relu(module(x))
    return x


class WideDeep(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.embedding = Bags(9, sparse)
        self.fc = layers(SLOTS * 9 + DENSE, [512, 256, 128, 32])
        self.head, self.wide = nn.Linear(32, 1), nn.Linear(DENSE, 1)

    def forward(self, ids, dense):
        x = torch.cat([self.embedding(ids).flatten(1), dense], 1)
        return self.head(through(self.fc, x)) + self.wide(dense)


class DeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.first_order = Bags(9, False), Bags(1, False)
        self.dense_embedding = nn.ParameterDict({"weight": torch.empty(DENSE, 9)})
        self.dense_first_order = nn.Linear(DENSE, 1, bias=False)
        self.fc = layers((SLOTS + DENSE) * 9, [400, 400, 400])
        self.head = nn.Linear(400, 1)
        self.bias = nn.Parameter(torch.empty(1))

    def forward(self, ids, dense):
        fields = torch.cat([self.embedding(ids), dense[:, :, None] * self.dense_embedding["weight"]], 1)
        pairs = (fields.sum(1) ** 2 - (fields**2).sum(1)).sum(1, keepdim=True) / 2
        first = self.first_order(ids).sum(1) + self.dense_first_order(dense)
        return self.head(through(self.fc, fields.flatten(1))) + pairs + first + self.bias


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = Bags(16, False)
        self.bottom = layers(DENSE, [512, 256, 64])
        self.bottom_head = nn.Linear(64, 16)
        self.top = layers((SLOTS + 1) * SLOTS // 2 + 16, [512, 256])
        self.head = nn.Linear(256, 1)

    def forward(self, ids, dense):
        bottom = torch.relu(self.bottom_head(through(self.bottom, dense)))
        features = torch.cat([bottom[:, None], self.embedding(ids)], 1)
        rows, columns = torch.tril_indices(SLOTS + 1, SLOTS + 1, -1)
        products = (features @ features.transpose(1, 2))[:, rows, columns]
        return self.head(through(self.top, torch.cat([bottom, products], 1)))


def our_name(name):
    """fc.0.weight is our fc1.weight."""
    parts = name.replace(".table.", ".").split(".")
    if len(parts) == 3:
        parts = [parts[0] + str(int(parts[1]) + 1), parts[2]]
    return ".".join(parts)


def filled(model):
    """The weights of golden_tensors.py; those of tables are smaller, as those of one row are added up."""
    model = model.double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            own = our_name(name)
            values = tensor(own, list(parameter.shape)).double()
            parameter.copy_(values / 8 if "embedding" in own or own.startswith("first_order") else values)
    return model


def losses_of(rows, make_optimizer):
    model = filled(WideDeep(sparse=True))
    optimizer = make_optimizer(model.parameters())
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = model(rows.ids[step], rows.dense[step])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, rows.label[step])
        loss.backward()
        optimizer.step()
        losses.append(float(f"{loss.item():.9g}"))
    return losses


def summary(values, samples=8):
    flat = values.flatten()
    step = 1 if len(flat) < samples else len(flat) // samples
    return {"norm": flat.norm().item(), "sum": flat.sum().item(), "step": step, "values": flat[::step][:samples].tolist()}


def one_step(rows, model):
    model = filled(model)
    logits = model(rows.ids[0], rows.dense[0])
    loss = nn.functional.binary_cross_entropy_with_logits(logits, rows.label[0])
    loss.backward()
    return {"loss": loss.item(), "logits": logits.flatten().tolist(),
            "gradients": {our_name(name): summary(parameter.grad) for name, parameter in model.named_parameters()}}


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else value
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def main():
    rows = Rows(STEPS)
    golden = {
        "torch": torch.__version__.split("+")[0],
        "metrics": auc_cases(),
        "wide_deep_sgd": losses_of(rows, lambda p: torch.optim.SGD(p, lr=0.1)),
        "wide_deep_adagrad": losses_of(rows, lambda p: torch.optim.Adagrad(p, lr=0.02, initial_accumulator_value=0.1)),
        "wide_deep": one_step(rows, WideDeep(sparse=False)),
        "deepfm": one_step(rows, DeepFm()),
        "dlrm": one_step(rows, Dlrm()),
    }
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "clicks.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rounded(golden), file, indent=None, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
