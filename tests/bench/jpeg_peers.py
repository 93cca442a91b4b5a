#!/usr/bin/env python3
"""Decoding for training on one core, against torchvision and Pillow: JPEG file to a normalised 224x224 random crop.

    FLEET_PYTHON=PYTHON scripts/bench.sh jpeg_peers [FOLDER]   # a Python with torch and torchvision

In turns: fleetrun (bench_jpeg), torchvision (decode_image() and transforms.v2 on tensors) and Pillow (Image.open() and
transforms.v2 on images, as ImageFolder does it); medians of the rates are compared. FOLDER holds JPEG files.
"""
# Builds: bench_jpeg
import os
import re
import statistics
import subprocess
import sys
import time

try:
    import torch
    from PIL import Image
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2
except ImportError as error:
    print(f"jpeg_peers: skipped: {error.name} is not installed here")
    sys.exit(0)

ROUNDS = 3
here = os.path.dirname(os.path.abspath(__file__))
folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "../../build/release/imagenet_200")
if not os.path.isdir(folder):
    print("jpeg_peers: skipped: give a folder of JPEG files")
    sys.exit(0)
core = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})
torch.set_num_threads(1)
files = []
for name in sorted(os.listdir(folder)):
    with open(os.path.join(folder, name), "rb") as file:
        files.append(file.read())
mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
on_tensors = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(),
                         v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, deviation)])
on_images = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(),
                        v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, deviation)])


def torchvision(data):
    return on_tensors(decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.RGB))


def pillow(data):
    import io
    return on_images(Image.open(io.BytesIO(data)).convert("RGB"))


def rate(function):
    start = time.perf_counter()
    for data in files:
        function(data)
    return len(files) / (time.perf_counter() - start)


def ours():
    program = os.path.join(here, "../../build/release/bin/bench_jpeg")
    output = subprocess.run([program, folder, "3"], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"ours (\d+) images/s", output).group(1))


rates = {"ours": [], "torchvision": [], "pillow": []}
rate(torchvision)
rate(pillow)
for _ in range(ROUNDS):
    rates["ours"].append(ours())
    rates["torchvision"].append(rate(torchvision))
    rates["pillow"].append(rate(pillow))
median = {name: statistics.median(values) for name, values in rates.items()}
for peer in ("torchvision", "pillow"):
    print(f"jpeg_peers: ratio {median['ours'] / median[peer]:.2f} (ours {median['ours']:.0f} images/s, "
          f"{peer} {median[peer]:.0f} images/s)")
