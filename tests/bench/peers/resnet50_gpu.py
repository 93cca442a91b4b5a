#!/usr/bin/env python3
"""PyTorch's ResNet-50 training step on a GPU, as fast as PyTorch offers it: the peer of scripts/gpu_bench.sh.

channels_last throughout; float16 (with GradScaler) and bfloat16 by autocast, or float32 with or without TF32; SGD with momentum
in one fused kernel; eager, the whole step as one CUDA graph, torch.compile, or torch.compile in mode max-autotune (which takes
CUDA graphs too). Images are one made-up batch that stays on the GPU, or JPEG files of a list ("path label" lines) through
DataLoader workers. The last line is "RESULT " and a JSON object.
"""
import argparse
import json
import os
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu only shows that the script works")
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--dtype", choices=["float16", "bfloat16", "tf32", "float32"], default="float16")
parser.add_argument("--mode", choices=["eager", "graph", "compile", "max-autotune"], default="eager")
parser.add_argument("--warmup", type=int, default=10, help="steps before the first that counts")
parser.add_argument("--seconds", type=float, default=8, help="how long to measure")
parser.add_argument("--list", help="file of JPEG paths and labels; without it made-up images")
parser.add_argument("--root", default="", help="folder that the list's paths start from")
parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
options = parser.parse_args()

try:
    import torch
    from torch import nn

    from resnet50 import ResNet50
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here")
    sys.exit(0)

gpu = options.device == "cuda"
if gpu and not torch.cuda.is_available():
    print("SKIP: this PyTorch sees no GPU")
    sys.exit(0)
if options.mode == "graph" and not gpu:
    print("SKIP: CUDA graphs need a GPU")
    sys.exit(0)
device = torch.device(options.device)
torch.manual_seed(1)
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = options.dtype == "tf32"
torch.backends.cudnn.allow_tf32 = options.dtype == "tf32"
low = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(options.dtype)

model = ResNet50().train().to(device).to(memory_format=torch.channels_last)
network = model
if options.mode == "compile":
    network = torch.compile(model)
elif options.mode == "max-autotune":
    network = torch.compile(model, mode="max-autotune")
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=gpu)
# A lower scale than the default 65536: if the first step overflows, the fused SGD keeps momentum that nothing has written.
scaler = torch.amp.GradScaler(options.device, init_scale=1024, enabled=low is torch.float16 and gpu)


def step(images, labels):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(options.device, dtype=low or torch.bfloat16, enabled=low is not None):
        loss = loss_of(network(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss


def synchronize():
    if gpu:
        torch.cuda.synchronize()


class Files(torch.utils.data.Dataset):
    """A random crop of each photograph, resized and flipped, as bytes: normalising is the GPU's."""

    def __init__(self):
        with open(options.list) as lines:
            pairs = [line.rsplit(maxsplit=1) for line in lines if line.strip()]
        self.files = [(os.path.join(options.root, path), int(label)) for path, label in pairs]
        from torchvision.transforms import v2
        self.augment = v2.Compose([v2.RandomResizedCrop(options.size, antialias=True), v2.RandomHorizontalFlip()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        from torchvision.io import ImageReadMode, decode_jpeg, read_file
        path, label = self.files[index]
        return self.augment(decode_jpeg(read_file(path), mode=ImageReadMode.RGB)), label


def batches():
    """For ever; on the device."""
    shape = (options.batch, 3, options.size, options.size)
    if not options.list:
        images = torch.randn(shape, device=device).to(memory_format=torch.channels_last)
        labels = torch.randint(0, 1000, (options.batch,), device=device)
        while True:
            yield images, labels
    mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(1, 3, 1, 1) * 255
    scale = 1 / (torch.tensor([0.229, 0.224, 0.225], device=device).view(1, 3, 1, 1) * 255)
    loader = torch.utils.data.DataLoader(
        Files(), options.batch, shuffle=True, drop_last=True, num_workers=options.workers, pin_memory=gpu,
        persistent_workers=options.workers > 0, prefetch_factor=4 if options.workers > 0 else None)
    while True:
        for images, labels in loader:
            images = images.to(device, non_blocking=True).to(memory_format=torch.channels_last)
            yield (images.float() - mean) * scale, labels.to(device, non_blocking=True)


source = batches()
run = step
if options.mode == "graph":
    # The whole step, captured once: the way to rid eager PyTorch of its launches.
    held_images, held_labels = next(source)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step(held_images, held_labels)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held_loss = step(held_images, held_labels)

    def run(images, labels):
        if images is not held_images:
            held_images.copy_(images)
            held_labels.copy_(labels)
        graph.replay()
        return held_loss


begun = time.perf_counter()
for _ in range(options.warmup):
    loss = run(*next(source))
synchronize()
prepared = time.perf_counter() - begun
speeds, chunk = [], 5 if gpu else 1
end = time.perf_counter() + options.seconds
while time.perf_counter() < end or len(speeds) < 2:
    begun = time.perf_counter()
    for _ in range(chunk):
        loss = run(*next(source))
    synchronize()
    speeds.append(options.batch * chunk / (time.perf_counter() - begun))
result = {
    "torch": torch.__version__,
    "device": torch.cuda.get_device_name() if gpu else "cpu",
    "mode": options.mode,
    "dtype": options.dtype,
    "batch": options.batch,
    "input": "jpeg" if options.list else "synthetic",
    # A loader gives batches in bursts: only the rate over all of the time counts (of equal pieces: the harmonic mean).
    "images_per_s": statistics.harmonic_mean(speeds) if options.list else statistics.median(speeds),
    "steps": len(speeds) * chunk,
    "prepared_s": prepared,
    "loss": float(loss.detach()),
    "reserved_mib": torch.cuda.max_memory_reserved() / 2**20 if gpu else None,
}
print(f"torch {torch.__version__} {options.mode} {options.dtype} batch {options.batch}: {result['images_per_s']:.1f} images/s")
print("RESULT " + json.dumps(result), flush=True)
os._exit(0)  # no waiting for loaders
