#!/usr/bin/env python3
"""Training input on one core: JPEG file to a normalised random crop, mirrored and augmented by a policy, against peers.

    FLEET_PYTHON=PYTHON scripts/bench.sh vision_augment [FOLDER]   # a Python with torch, torchvision, timm and Pillow

In turns: fleetrun (bench_vision_augment), torchvision on tensors of 8 bits (decode_image() and transforms.v2),
torchvision on Pillow's images (as ImageFolder does it), and timm's create_transform() for its own strings. Medians of
the ratios are printed. FOLDER holds JPEG files. FLEET_ROWS limits the rows to names that match this pattern.
"""
# Builds: bench_vision_augment
import io
import json
import os
import re
import statistics
import subprocess
import sys
import time

ROUNDS = 3
here = os.path.dirname(os.path.abspath(__file__))
program = os.path.join(here, "../../build/release/bin/bench_vision_augment")
given = sys.argv[1] if len(sys.argv) > 1 else ""


def ours(keys):
    output = subprocess.run([program, given, "1", json.dumps(keys)], capture_output=True, text=True, check=True).stdout
    if "skipped" in output:
        print(output, end="")
        sys.exit(0)
    return float(re.search(r"([\d.]+) images/s", output).group(1))


ours({"random_resized_crop": True})
try:
    import PIL
    import timm
    import timm.data.auto_augment
    import torch
    import torchvision
    from PIL import Image
    from timm.data import create_transform
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2
except ImportError as error:
    print(f"vision_augment: skipped: {error.name} is not installed here")
    sys.exit(0)

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
torch.set_num_threads(1)
folder = given or os.path.join(here, "../../build/release/imagenet_200")
files = []
for name in sorted(os.listdir(folder)):
    with open(os.path.join(folder, name), "rb") as file:
        files.append(file.read())
mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
end = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, deviation)]


def decoded(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def on_tensors(policy):
    chain = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), *policy, *end])
    return lambda data: chain(decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.RGB))


def on_images(policy):
    chain = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), *policy, v2.ToImage(), *end])
    return lambda data: chain(decoded(data))


# timm asks Pillow for 0 bits, which Pillow 13 refuses.
posterize = timm.data.auto_augment.posterize
timm.data.auto_augment.NAME_TO_OP.update(
    {name: lambda image, bits, **rest: posterize(image, max(bits, 1), **rest)
     for name in ("Posterize", "PosterizeIncreasing", "PosterizeOriginal")})


def by_timm(text):
    chain = create_transform(224, is_training=True, auto_augment=text, interpolation="random", mean=mean, std=deviation,
                             color_jitter=None)
    return lambda data: chain(decoded(data))


def rate(function):
    start = time.perf_counter()
    for data in files:
        function(data)
    return len(files) / (time.perf_counter() - start)


crop = {"random_resized_crop": True, "flip": True}
versions = {"tensors": f"torchvision {torchvision.__version__} on tensors",
            "images": f"torchvision on Pillow {PIL.__version__}", "timm": f"timm {timm.__version__} on Pillow {PIL.__version__}"}
ONLY = os.environ.get("FLEET_ROWS", "")
rows = [("no policy", {}, {"tensors": on_tensors([]), "images": on_images([])})]
for policy in ("TrivialAugmentWide", "RandAugment", "AutoAugment", "AugMix"):
    made = [getattr(v2, policy)()]
    rows.append((policy, {"policy": policy}, {"tensors": on_tensors(made), "images": on_images(made)}))
for text in ("rand-m9-mstd0.5-inc1", "augmix-m3-w3", "3a"):
    rows.append((text, {"policy": text, "interpolation": "random"}, {"timm": by_timm(text)}))
for name, keys, peers in rows:
    if not re.search(ONLY, name):
        continue
    rates = {"ours": [], **{peer: [] for peer in peers}}
    for _ in range(ROUNDS):
        rates["ours"].append(ours({**crop, **keys}))
        for peer, function in peers.items():
            rates[peer].append(rate(function))
    for peer in peers:
        ratio = statistics.median(a / b for a, b in zip(rates["ours"], rates[peer]))
        print(f"vision_augment: {name}: ratio {ratio:.2f} (ours {statistics.median(rates['ours']):.0f} images/s, "
              f"{versions[peer]} {statistics.median(rates[peer]):.0f} images/s)")
