#!/usr/bin/env python3
"""Evaluation of photographs on one core: JPEG file to the normalised centre of a bicubic resize, against Pillow.

    FLEET_PYTHON=PYTHON scripts/bench.sh vision_input [FOLDER]   # a Python with numpy and Pillow, or Pillow-SIMD

In turns: fleetrun (bench_vision_input) and what torchvision's Resize(256), CenterCrop(224), ToTensor and Normalize do
with Pillow and numpy; medians of the rates are compared. Also counts the values that differ from Pillow's, by filter,
crop mode and order of passes, and prints the exact resize against the one in float. FOLDER holds JPEG files.
"""
# Builds: bench_vision_input
import io
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
program = os.path.join(here, "../../build/release/bin/bench_vision_input")
given = sys.argv[1] if len(sys.argv) > 1 else ""
ROUNDS, SIDE, RESIZED = 3, 224, 256


def ours(*arguments):
    return subprocess.run([program, given, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


first = ours(11)
print(first, end="")
if "skipped" in first:
    sys.exit(0)
try:
    import numpy
    import PIL
    from PIL import Image, ImageOps, features
except ImportError as error:
    print(f"vision_input: against Pillow: skipped: {error.name} is not installed here")
    sys.exit(0)

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
folder = given or os.path.join(here, "../../build/release/imagenet_200")
files = []
for name in sorted(os.listdir(folder)):
    with open(os.path.join(folder, name), "rb") as file:
        files.append(file.read())
MEAN = [0.485, 0.456, 0.406]
mean, deviation = numpy.float32(MEAN), numpy.float32([0.229, 0.224, 0.225])
scale, bias = 1 / (255 * deviation), -mean / deviation
peer = f"Pillow{'-SIMD' if 'post' in PIL.__version__ else ''} {PIL.__version__}"


def decoded(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def resized(image, size, kind, order):
    size = tuple(size)
    if order == "pillow12":  # across first, always
        image = image.resize((size[0], image.height), kind)
    return image.resize(size, kind)


def cropped(image, kind=Image.BICUBIC, part=SIDE / RESIZED, mode="center", order="pillow13"):
    """torchvision's Resize and CenterCrop, or timm's other modes."""
    side = math.floor(SIDE / part)
    if mode == "squash":
        image = resized(image, (side, side), kind, order)
    else:
        whole = max(image.size) if mode == "border" else min(image.size)
        border = [round(size / (whole / side)) for size in image.size]
        image = resized(image, border if mode == "border" else [int(side * size / whole) for size in image.size], kind,
                        order)
    across, down = (max(SIDE - size, 0) for size in image.size)
    if across or down:
        fill = tuple(round(255 * value) for value in MEAN)
        image = ImageOps.expand(image, (across // 2, down // 2, (across + 1) // 2, (down + 1) // 2), fill)
    left, top = (round((size - SIDE) / 2.0) for size in image.size)
    return image.crop((left, top, left + SIDE, top + SIDE))


def evaluated(data):
    return numpy.ascontiguousarray((numpy.asarray(cropped(decoded(data))) * scale + bias).transpose(2, 0, 1))


def differing(images, kind, part, mode, order):
    """The values that differ, of how many, and by how much at most."""
    keys = json.dumps({"crop_pct": part, "crop_mode": mode})
    with tempfile.NamedTemporaryFile() as file:
        ours("pixels", file.name, keys, kind, order)
        mine = numpy.fromfile(file.name, dtype=numpy.uint8).reshape(len(images), SIDE, SIDE, 3)
    kind = getattr(Image, kind.upper())
    theirs = numpy.stack([numpy.asarray(cropped(image, kind, part, mode, order)) for image in images])
    off = numpy.abs(mine.astype(int) - theirs)
    return numpy.count_nonzero(off), off.size, off.max()


def rate(function, items):
    start = time.perf_counter()
    for item in items:
        function(item)
    return len(items) / (time.perf_counter() - start)


def rate_in(output, what):
    return float(re.search(rf"{what}: ([\d.]+) images/s", output).group(1))


images = [decoded(data) for data in files]
cases = [("bicubic", SIDE / RESIZED, "center", "pillow13")]
if "SIMD" not in peer and int(PIL.__version__.split(".")[0]) >= 13:
    cases = [(kind, part, mode, order) for kind in ("box", "bilinear", "bicubic", "lanczos")
             for part, mode in ((SIDE / RESIZED, "center"), (0.9, "squash"), (1.0, "border"))
             for order in ("pillow13", "pillow12")]
found = [differing(images, *case) for case in cases]
off, values, most = sum(one[0] for one in found), sum(one[1] for one in found), max(one[2] for one in found)
print(f"vision_input: {off} of {values} values differ from {peer}, by at most {most} ({len(files)} photographs, "
      f"{len(cases)} choices of filter, crop mode and order of passes)")
rates = {"evaluation": ([], []), "resize alone": ([], [])}
for _ in range(ROUNDS):
    output = ours(3)
    for what, function, items in (("evaluation", evaluated, files), ("resize alone", cropped, images)):
        rates[what][0].append(rate_in(output, "bicubic " + what))
        rates[what][1].append(rate(function, items))
for what, (own, other) in rates.items():
    ratio = statistics.median(a / b for a, b in zip(own, other))
    print(f"vision_input: bicubic {what}: ratio {ratio:.2f} (ours {statistics.median(own):.0f} images/s, "
          f"{peer} {statistics.median(other):.0f} images/s, libjpeg-turbo {features.version('libjpeg_turbo')})")
