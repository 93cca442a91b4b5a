#!/usr/bin/env python3
"""Generates tests/golden/<model>.json for torchvision's networks of segmentation, as scripts/make_golden.py describes them.

    python3 scripts/make_golden_segmentation.py       # needs torch and torchvision

The mask is draws("mask") mod (classes + 1), where the last number stands for 255: no class. The loss of a sample is the mean over its
labelled pixels, plus half of that of the auxiliary head; the loss is the mean over the samples. <model>_weighted.json has
CrossEntropyLoss(weight=WEIGHTS, ignore_index=255) instead. Of the logits [N, classes, H, W] every
step-th is stored, with step = elements / LOGITS.

The biases of batch norms in front of a ReLU in the backbone are the usual draws plus SHIFT: few values then lie next to 0. Without it, the
rounding of float32 turns the sign of a value in one of 1e6, which changes gradients in front of it by 1e-3; and it makes ResNets of random
weights so sensitive that an input moved by 6e-8 moves gradients by 1e-2. PyTorch's own float32 gradients of fcn_resnet50 are then 2e-2 away
from those in float64, and no tolerance below that says anything; larger images do not change it. With SHIFT that distance is below 1e-4.
"""
import json
import os
import re

import numpy
import torch
import torchvision
from golden_draws import draws
from golden_tensors import tensor as named_tensor
from torch import nn
from torch.nn import functional

CLASSES, LOGITS, GRADIENTS = 5, 64, 8
SHIFT = 2
IN_FRONT_OF_RELU = re.compile(r"backbone\.(bn1|layer.*|[1-6]\.block\.\d\.1)\.bias")
WEIGHTS = [0.5, 2.0, 1.0, 0.25, 4.0]
NETWORKS = {
    "fcn_resnet50": (4, 3, 49, 65),
    "deeplabv3_resnet50": (4, 3, 49, 65),
    "deeplabv3_mobilenet_v3_large": (4, 3, 49, 65),
    "lraspp_mobilenet_v3_large": (4, 3, 49, 65),
}


def tensor(name, shape):
    """As scripts/make_golden.py."""
    u = ((draws(name, int(numpy.prod(shape))) >> numpy.uint64(40)).astype(numpy.float64) * 2 / 2**24 - 1).astype(numpy.float32)
    if name == "input":
        return u.reshape(shape)
    if name.endswith("running_var"):
        return numpy.float32(1) + u * numpy.float32(0.25)
    values = named_tensor(name, shape).numpy()
    return values + numpy.float32(SHIFT) if IN_FRONT_OF_RELU.fullmatch(name) else values


def summary(values, samples):
    flat = values.detach().double().flatten()
    step = max(1, len(flat) // samples)
    return {
        "samples": samples,
        "norm": float(f"{float(flat.norm()):.9g}"),
        "sum": float(f"{float(flat.sum()):.9g}"),
        "step": step,
        "values": [float(f"{value:.9g}") for value in flat[::step][:samples].tolist()],
    }


def chosen(pairs):
    pairs = list(pairs)
    return [pairs[i * (len(pairs) - 1) // (GRADIENTS - 1)] for i in range(GRADIENTS)]


def loss_of(logits, mask, weighted):
    if weighted:
        return functional.cross_entropy(logits, mask, torch.tensor(WEIGHTS, dtype=logits.dtype), ignore_index=255)
    losses = functional.cross_entropy(logits, mask, reduction="none", ignore_index=255)
    return (losses.sum((1, 2)) / (mask != 255).sum((1, 2))).mean()


def some(logits):
    flat = logits.detach().flatten()
    return [float(f"{value:.9g}") for value in flat[:: len(flat) // LOGITS].tolist()]


def build(name):
    keys = {"weights": None, "weights_backbone": None, "num_classes": CLASSES}
    if not name.startswith("lraspp"):
        keys["aux_loss"] = True
    model = getattr(torchvision.models.segmentation, name)(**keys)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model.double()


def make(name, weighted=False):
    shape = NETWORKS[name]
    model = build(name)
    values = {key: tensor(key, tuple(value.shape)) for key, value in model.state_dict().items() if not key.endswith("num_batches_tracked")}
    model.load_state_dict({key: torch.from_numpy(value).double() for key, value in values.items()}, strict=False)
    images = torch.from_numpy(tensor("input", shape)).double()
    size = (shape[0], *shape[2:])
    mask = (draws("mask", int(numpy.prod(size))) % numpy.uint64(CLASSES + 1)).astype(numpy.int64).reshape(size)
    mask = torch.from_numpy(numpy.where(mask == CLASSES, 255, mask))
    model.eval()
    with torch.no_grad():
        evaluated = model(images)["out"]
    model.train()
    outputs = model(images)
    loss = loss_of(outputs["out"], mask, weighted)
    if "aux" in outputs:
        loss = loss + 0.5 * loss_of(outputs["aux"], mask, weighted)
    loss.backward()
    result = {
        "made_by": f"scripts/make_golden_segmentation.py with PyTorch {torch.__version__}, torchvision {torchvision.__version__}",
        "model": name,
        "classes": CLASSES,
        "input_shape": list(shape),
        "labels": [],
        "loss": loss.item(),
        "logits": some(outputs["out"]),
        "eval_logits": some(evaluated),
        "gradients": {key: summary(value.grad, 2) for key, value in chosen(model.named_parameters())},
        "running_after": {key: summary(value, 2) for key, value in chosen((k, v) for k, v in model.named_buffers() if k.endswith(("mean", "var")))},
        "parameters": len(list(model.parameters())),
    }
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", name + ("_weighted" if weighted else "") + ".json")
    with open(path, "w") as file:
        file.write(json.dumps(result) + "\n")
    print(f"{name}: loss {loss.item():.6f}")


for network in NETWORKS:
    make(network)
make("deeplabv3_mobilenet_v3_large", weighted=True)
