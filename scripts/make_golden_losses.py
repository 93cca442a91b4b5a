#!/usr/bin/env python3
"""Generates tests/golden/losses.json: losses of PyTorch, torchvision and timm and their gradients, on random logits.

    python3 scripts/make_golden_losses.py    # with torch, torchvision and timm

tests/engine/models/losses_golden_test.cc draws the same values: number i of a tensor is splitmix64(FNV-1a(its name) + i), from -4 to
4. Each case is a task, its keys below train., and its loss and gradient in float64.
"""
import json
import os
import sys

from golden_draws import fnv1a, splitmix64

try:
    import torch
    import torch.nn.functional as F
    from timm.loss import BinaryCrossEntropy, LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
    from timm.data.mixup import mixup_target
    from torchvision.ops import sigmoid_focal_loss
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch torchvision timm)")
    sys.exit(0)

SAMPLES, CLASSES = 6, 5
LABELS = torch.tensor([0, 3, 4, 1, 2, 2])
OTHER = torch.tensor([1, 3, 0, 2, 4, 0])
SHARE = torch.tensor([0.75, 0.5, 0.25, 1.0, 0.625, 0.125], dtype=torch.float64)


def draw(name, *shape):
    count = 1
    for size in shape:
        count *= size
    at = fnv1a(name)
    values = [((splitmix64(at + i) >> 11) % 8192 - 4096) / 1024 for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


TARGETS = (draw("targets", SAMPLES, CLASSES) > 0).double()
SHARES = torch.softmax(draw("shares", SAMPLES, CLASSES), -1).float().double()
NUMBERS = draw("numbers", SAMPLES, CLASSES)


def mixed(smoothing):
    """timm's mixed targets, with a share of each sample's own."""
    rows = []
    for i in range(SAMPLES):
        pair = torch.stack([LABELS[i], OTHER[i]])
        rows.append(mixup_target(pair, CLASSES, float(SHARE[i]), smoothing)[0])
    return torch.stack(rows).double()


def focal(logits, targets, alpha, gamma):
    return sigmoid_focal_loss(logits, targets, alpha, gamma, reduction="mean")


def one_hot():
    return F.one_hot(LABELS, CLASSES).double()


def cases():
    images, several, numbers = "image_classification", "multi_label", "regression"
    weights = torch.tensor([0.5, 2, 1, 3, 1.5], dtype=torch.float64)
    bce = BinaryCrossEntropy
    smooth = dict(label_smoothing=0.1)
    yield images, dict(loss="cross_entropy", **smooth), "label", lambda x: LabelSmoothingCrossEntropy(0.1)(x, LABELS)
    yield images, dict(loss="cross_entropy", **smooth), "mixed", lambda x: SoftTargetCrossEntropy()(x, mixed(0.1))
    yield images, dict(loss="cross_entropy"), "shares", lambda x: SoftTargetCrossEntropy()(x, SHARES)
    yield images, dict(loss="cross_entropy", **smooth), "shares", lambda x: F.cross_entropy(x, SHARES, label_smoothing=0.1)
    yield images, dict(loss="bce", **smooth), "label", lambda x: bce(0.1)(x, LABELS)
    yield images, dict(loss="bce", bce_sum=True, **smooth), "label", lambda x: bce(0.1, sum_classes=True)(x, LABELS)
    yield images, dict(loss="bce", **smooth), "mixed", lambda x: bce(0.1)(x, mixed(0.1))
    yield (images, dict(loss="bce", bce_target_threshold=0.2, **smooth), "mixed",
           lambda x: bce(0.1, target_threshold=0.2)(x, mixed(0.1)))
    yield (images, dict(loss="bce", positive_weights=weights.tolist()), "label",
           lambda x: bce(0.0, pos_weight=weights)(x, LABELS))
    yield images, dict(loss="bce"), "shares", lambda x: bce(0.0)(x, SHARES)
    yield images, dict(loss="focal"), "label", lambda x: focal(x, one_hot(), 0.25, 2)
    yield images, dict(loss="focal", focal_alpha=-1, focal_gamma=1.5), "mixed", lambda x: focal(x, mixed(0), -1, 1.5)
    yield several, dict(), "targets", lambda x: F.binary_cross_entropy_with_logits(x, TARGETS)
    yield several, smooth, "targets", lambda x: bce(0.1, smooth_dense=True)(x, TARGETS)
    yield (several, dict(positive_weights=weights.tolist(), **smooth), "targets",
           lambda x: bce(0.1, smooth_dense=True, pos_weight=weights)(x, TARGETS))
    yield several, dict(positive_weights=[2.5]), "targets", lambda x: bce(0.0, pos_weight=2.5)(x, TARGETS)
    yield several, dict(loss="focal"), "targets", lambda x: focal(x, TARGETS, 0.25, 2)
    yield numbers, dict(), "numbers", lambda x: F.mse_loss(x, NUMBERS)
    yield numbers, dict(loss="l1"), "numbers", lambda x: F.l1_loss(x, NUMBERS)
    yield numbers, dict(loss="smooth_l1"), "numbers", lambda x: F.smooth_l1_loss(x, NUMBERS)
    yield numbers, dict(loss="smooth_l1", smooth_l1_beta=2.5), "numbers", lambda x: F.smooth_l1_loss(x, NUMBERS, beta=2.5)


def distillation_cases():
    """timm's LogitDistillationTask, and DeiT's hard distillation."""
    teacher = draw("teacher", SAMPLES, CLASSES)
    for alpha, temperature in [(0.5, 1), (0.7, 3)]:
        def soft(x, alpha=alpha, temperature=temperature):
            own = F.log_softmax(x / temperature, -1)
            theirs = F.log_softmax(teacher / temperature, -1)
            divergence = F.kl_div(own, theirs, reduction="batchmean", log_target=True) * temperature**2
            return (1 - alpha) * F.cross_entropy(x, LABELS) + alpha * divergence
        yield {"distillation.alpha": alpha, "distillation.temperature": temperature}, soft
    yield ({"distillation.hard": True},
           lambda x: 0.5 * F.cross_entropy(x, LABELS) + 0.5 * F.cross_entropy(x, teacher.argmax(-1)))


def result(loss):
    logits = draw("logits", SAMPLES, CLASSES).requires_grad_()
    value = loss(logits)
    value.backward()
    return {"loss": value.item(), "gradient": logits.grad.flatten().tolist()}


def main():
    losses = [{"task": task, "keys": keys, "labels": labels, **result(loss)} for task, keys, labels, loss in cases()]
    distilled = [{"keys": keys, **result(loss)} for keys, loss in distillation_cases()]
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "losses.json")
    with open(path, "w", encoding="utf-8") as file:
        lines = [f'{{"shares": {json.dumps(SHARES.flatten().tolist())}']
        for name, values in [("losses", losses), ("distillation", distilled)]:
            lines.append(f'"{name}": [\n' + ",\n".join(json.dumps(value) for value in values) + "]")
        file.write(",\n".join(lines) + "}\n")
    print(f"{len(losses)} losses, {len(distilled)} of distillation")


main()
