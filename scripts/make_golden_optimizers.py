#!/usr/bin/env python3
"""Prints the values of tests/engine/optim for muon, adafactor, schedule_free_* and adaptive_clip.

Needs torch 2.15, timm 1.0 and schedulefree 1.4. Each line is a parameter after 20 steps in double;
parameters and gradients are wave() of rules.h. Muon's iteration runs in double, not in bfloat16.
"""
import inspect
import types

import schedulefree
import torch
import torch.optim._muon
from timm.utils.agc import adaptive_clip_grad

STEPS = 20


def wave(shape, offset, divisor):
    count = torch.Size(shape).numel()
    values = [((7 * i + offset) % 13 - 6) / divisor for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).float().double().reshape(shape)


def show(name, tensor):
    print(name, ", ".join(f"{x:.10g}" for x in tensor.detach().flatten().tolist()))


def run(name, make, shape, view=None, gradient_divisor=5, before=None):
    """view: the shape that the optimizer sees."""
    p = torch.nn.Parameter(wave(shape, 1, 4).reshape(view or shape))
    optimizer = make([p])
    if hasattr(optimizer, "train"):
        optimizer.train()
    for step in range(STEPS):
        p.grad = wave(shape, step, gradient_divisor).reshape(view or shape)
        if before:
            before(p)
        optimizer.step()
    show(name, p)
    if hasattr(optimizer, "eval"):
        optimizer.eval()
        show(name + " averaged", p)


def double_muon():
    source = inspect.getsource(torch.optim._muon).replace("dtype=torch.bfloat16", "dtype=grad.dtype")
    module = types.ModuleType("double_muon")
    exec(source.replace("from .optimizer", "from torch.optim.optimizer"), module.__dict__)
    return module.Muon


def adaptive_clip():
    """The second row is almost zero, and the third has small gradients."""
    w, b = wave((3, 4), 1, 4), torch.tensor([0.5, -0.25, 0.125], dtype=torch.float64)
    w[1] *= 1e-4
    w, b = torch.nn.Parameter(w), torch.nn.Parameter(b)
    optimizer = torch.optim.SGD([w, b], lr=0.1, momentum=0.9)
    for step in range(STEPS):
        rows = [wave((4,), step + 3 * row, [2, 3, 800][row]) for row in range(3)]
        w.grad, b.grad = torch.stack(rows), wave((3,), step, 1000 if step % 2 else 5)
        adaptive_clip_grad([w, b], 0.02)
        optimizer.step()
    show("adaptive_clip 3x4", w)
    show("adaptive_clip 3", b)


def main():
    adafactor, muon = torch.optim.Adafactor, double_muon()
    eps = (2.0**-23, 1e-3)  # PyTorch's for float32
    run("adafactor 3x4", lambda p: adafactor(p, lr=0.1, eps=eps), (3, 4))
    run("adafactor 7", lambda p: adafactor(p, lr=0.1, eps=eps), (7,))
    run("adafactor 2x2x2x3 settings",
        lambda p: adafactor(p, lr=0.5, beta2_decay=-0.6, eps=(1e-4, 0.5), d=1.25, weight_decay=0.05),
        (2, 2, 2, 3))
    run("muon 3x4", lambda p: muon(p, lr=0.1), (3, 4))
    run("muon 4x3", lambda p: muon(p, lr=0.1, nesterov=False, momentum=0.8, weight_decay=0), (4, 3))
    run("muon 2x2x1x2 as 2x4",
        lambda p: muon(p, lr=0.1, ns_steps=3, adjust_lr_fn="match_rms_adamw"), (2, 2, 1, 2), (2, 4))
    run("muon's adamw 7", lambda p: torch.optim.AdamW(p, lr=0.05, betas=(0.8, 0.95), weight_decay=0.1),
        (7,))
    free = schedulefree.AdamWScheduleFree
    run("schedule_free_adamw 7", lambda p: free(p, lr=0.1, foreach=False), (7,))
    run("schedule_free_adamw 7 settings",
        lambda p: free(p, lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, warmup_steps=5,
                       foreach=False), (7,))
    run("schedule_free_sgd 7",
        lambda p: schedulefree.SGDScheduleFree(p, lr=0.1, momentum=0.8, weight_decay=0.1,
                                               warmup_steps=5, foreach=False), (7,))
    adaptive_clip()


if __name__ == "__main__":
    main()
