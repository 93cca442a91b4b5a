#!/usr/bin/env python3
"""PyTorch with the recipe of config/cifar10_resnet20.json, on the same JPEG files: one process with the global batch.

ROOT holds train/<class>/*.jpg and test/<class>/*.jpg. Prints a line an epoch and last "acc1: 0.xxxx" over the test images.
ResNet-20 as in the paper's section 4.2 (6n+2 layers, n = 3) with projection shortcuts where the shape changes (option B),
the network that `resnet20` of this project builds.
"""
import argparse
import math
import os
import random
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("root")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch", type=int, default=128, help="the global batch")
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--warmup_steps", type=int, default=0)
parser.add_argument("--threads", type=int, default=0, help="0: all cores this process may use")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], default="float32", help="of autocast")
parser.add_argument("--max_steps", type=int, default=0, help="stop after so many steps; 0: no limit")
parser.add_argument("--shortcut", choices=["projection", "pad"], default="projection")
options = parser.parse_args()

try:
    import numpy
    import torch
    from PIL import Image
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (apt-get install python3-torch python3-pil)")
    sys.exit(0)

torch.set_num_threads(options.threads or len(os.sched_getaffinity(0)))
torch.manual_seed(options.seed)
random.seed(options.seed)
if options.device == "cuda" and not torch.cuda.is_available():
    print("SKIP: this PyTorch sees no GPU")
    sys.exit(0)
DEVICE = torch.device(options.device)
LOW = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(options.dtype)
MEAN = torch.tensor([0.4914, 0.4822, 0.4465], device=DEVICE).view(1, 3, 1, 1)
STD = torch.tensor([0.2470, 0.2435, 0.2616], device=DEVICE).view(1, 3, 1, 1)


def read(split):
    """All images of a split as uint8 N,3,32,32, and their labels: classes in the order of their folders' names."""
    folder = os.path.join(options.root, split)
    images, labels = [], []
    for label, name in enumerate(sorted(os.listdir(folder))):
        for file in sorted(os.listdir(os.path.join(folder, name))):
            with Image.open(os.path.join(folder, name, file)) as image:
                images.append(numpy.asarray(image.convert("RGB")).transpose(2, 0, 1))
            labels.append(label)
    return torch.from_numpy(numpy.stack(images)).to(DEVICE), torch.tensor(labels).to(DEVICE)


def augment(images):
    """A random 32x32 window of the image padded with 4 zeros a side, flipped with probability a half, a sample each."""
    padded = functional.pad(images, (4, 4, 4, 4))
    if options.device == "cuda":  # all at once: a slice a sample would take longer than the step
        count, reach = len(images), torch.arange(32, device=DEVICE)
        rows = torch.randint(0, 9, (count, 1), device=DEVICE) + reach
        columns = torch.randint(0, 9, (count, 1), device=DEVICE) + reach
        columns = torch.where(torch.rand(count, 1, device=DEVICE) < 0.5, columns.flip(1), columns)
        samples = torch.arange(count, device=DEVICE)[:, None, None]
        crops = padded.permute(0, 2, 3, 1)[samples, rows[:, :, None], columns[:, None, :]]
        return crops.permute(0, 3, 1, 2)
    out = torch.empty_like(images)
    for i in range(len(images)):
        y, x = random.randint(0, 8), random.randint(0, 8)
        crop = padded[i, :, y : y + 32, x : x + 32]
        out[i] = crop.flip(2) if random.random() < 0.5 else crop
    return out


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.pad = outputs - inputs
        self.stride = stride
        self.downsample = None
        if (stride != 1 or inputs != outputs) and options.shortcut == "projection":
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.downsample is not None:
            x = self.downsample(x)
        elif self.pad:
            x = functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.pad))
        return functional.relu(x + y)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        blocks, inputs = [], 16
        for outputs, stride in ((16, 1), (32, 2), (64, 2)):
            for i in range(3):
                blocks.append(Block(inputs, outputs, stride if i == 0 else 1))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(64, 10)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.blocks(functional.relu(self.bn1(self.conv1(x))))
        return self.fc(x.mean((2, 3)))


def accuracy(model, images, labels):
    model.eval()
    right = 0
    with torch.no_grad():
        for at in range(0, len(images), 500):
            batch = (images[at : at + 500].float() / 255 - MEAN) / STD
            right += (model(batch).argmax(1) == labels[at : at + 500]).sum().item()
    model.train()
    return right / len(images)


begun = time.time()
images, labels = read("train")
test_images, test_labels = read("test")
print(f"torch {torch.__version__}: {len(images)} + {len(test_images)} images read in {time.time() - begun:.0f} s", flush=True)
model = ResNet20().to(DEVICE)
if LOW:
    model = model.to(memory_format=torch.channels_last)
scaler = torch.amp.GradScaler(options.device, enabled=LOW is torch.float16 and options.device == "cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, weight_decay=1e-4)
steps_an_epoch = len(images) // options.batch
total = steps_an_epoch * options.epochs
step = 0
begun = time.time()
for epoch in range(options.epochs):
    order = torch.randperm(len(images)).to(DEVICE)
    losses = torch.zeros((), device=DEVICE)
    for i in range(steps_an_epoch):
        if step < options.warmup_steps:
            rate = options.lr * (step + 1) / options.warmup_steps
        else:
            done = (step - options.warmup_steps) / max(1, total - options.warmup_steps)
            rate = options.lr * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = rate
        chosen = order[i * options.batch : (i + 1) * options.batch]
        batch = (augment(images[chosen]).float() / 255 - MEAN) / STD
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(options.device, dtype=LOW or torch.bfloat16, enabled=LOW is not None):
            loss = functional.cross_entropy(model(batch), labels[chosen])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses += loss.detach()
        step += 1
        if step == options.max_steps:
            break
    print(
        f"epoch {epoch}: loss {losses.item() / steps_an_epoch:.4f}, test acc1 {accuracy(model, test_images, test_labels):.4f}, "
        f"{time.time() - begun:.0f} s",
        flush=True,
    )
    if step == options.max_steps:
        break
print(f"trained in {time.time() - begun:.1f} s")
print(f"acc1: {accuracy(model, test_images, test_labels):.4f}")
