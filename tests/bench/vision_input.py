#!/usr/bin/env python3
"""Evaluation of photographs on one core: JPEG file to the normalised centre of a bicubic resize, against Pillow.

    FLEET_PYTHON=PYTHON scripts/bench.sh vision_input [FOLDER]   # a Python with numpy and Pillow, or Pillow-SIMD

In turns: fleetrun (bench_vision_input) and what torchvision's Resize(256), CenterCrop(224), ToTensor and Normalize do
with Pillow and numpy; medians of the rates are compared. Also counts the values that differ from Pillow's, and prints
the exact resize against the one in float. FOLDER holds JPEG files.
"""
# Builds: bench_vision_input
import io
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
ROUNDS, SIDE, RESIZED = 5, 224, 256


def ours(passes, *pixels):
    return subprocess.run([program, given, str(passes), *pixels], capture_output=True, text=True, check=True).stdout


first = ours(11)
print(first, end="")
if "skipped" in first:
    sys.exit(0)
try:
    import numpy
    import PIL
    from PIL import Image, features
except ImportError as error:
    print(f"vision_input: against Pillow: skipped: {error.name} is not installed here")
    sys.exit(0)

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
folder = given or os.path.join(here, "../../build/release/imagenet_200")
files = []
for name in sorted(os.listdir(folder)):
    with open(os.path.join(folder, name), "rb") as file:
        files.append(file.read())
mean, deviation = numpy.float32([0.485, 0.456, 0.406]), numpy.float32([0.229, 0.224, 0.225])
scale, bias = 1 / (255 * deviation), -mean / deviation
peer = f"Pillow{'-SIMD' if 'post' in PIL.__version__ else ''} {PIL.__version__}"


def decoded(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def cropped(image):
    short = min(image.size)
    image = image.resize(tuple(int(RESIZED * side / short) for side in image.size), Image.BICUBIC)
    left, top = (round((side - SIDE) / 2.0) for side in image.size)
    return image.crop((left, top, left + SIDE, top + SIDE))


def evaluated(data):
    return numpy.ascontiguousarray((numpy.asarray(cropped(decoded(data))) * scale + bias).transpose(2, 0, 1))


def rate(function, items):
    start = time.perf_counter()
    for item in items:
        function(item)
    return len(items) / (time.perf_counter() - start)


def rate_in(output, what):
    return float(re.search(rf"{what}: ([\d.]+) images/s", output).group(1))


with tempfile.NamedTemporaryFile() as file:
    ours(1, file.name)
    mine = numpy.fromfile(file.name, dtype=numpy.uint8).reshape(len(files), SIDE, SIDE, 3)
theirs = numpy.stack([numpy.asarray(cropped(decoded(data))) for data in files])
off = numpy.abs(mine.astype(int) - theirs)
print(f"vision_input: {numpy.count_nonzero(off)} of {off.size} values differ from {peer}, by at most {off.max()}")
images = [decoded(data) for data in files]
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
