#!/usr/bin/env python3
"""Generates tests/golden/resize.json: hashes of what Pillow 13 makes of images, by resize() and in evaluations.

    python3 scripts/make_golden_resize.py        # with numpy and Pillow 13.0 or later

Byte i of the image NAME is splitmix64(FNV-1a(NAME) + i) mod 256: height x width x channels. A hash is the FNV-1a of the
resulting bytes in the same order. tests/engine/data/golden_resize_test.cc makes the same images. Evaluations follow
torchvision's Resize(n) and CenterCrop, and timm 1.0's crop modes (timm/data/transforms_factory.py).
"""
import json
import math
import os
import sys

from golden_draws import MASK, draws

try:
    import numpy
    import PIL
    from PIL import Image, ImageOps
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install numpy pillow)")
    sys.exit(0)
if int(PIL.__version__.split(".")[0]) < 13:
    sys.exit(f"Pillow {PIL.__version__} resizes in another order: install 13.0 or later")

FILTERS = {"box": Image.Resampling.BOX, "bilinear": Image.Resampling.BILINEAR, "hamming": Image.Resampling.HAMMING,
           "bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS}


def image_of(name, height, width, channels):
    values = (draws(name, height * width * channels) % numpy.uint64(256)).astype(numpy.uint8)
    return Image.fromarray(values.reshape((height, width, channels) if channels == 3 else (height, width)))


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return f"{value:016x}"


def resized(image, height, width, kind, order):
    if order == "pillow12":  # across first, always
        image = image.resize((width, image.height), FILTERS[kind])
        return image.resize((width, height), FILTERS[kind])
    return image.resize((width, height), FILTERS[kind])


def center_crop(image, height, width, fill):
    """timm's center_crop_or_pad(), which without padding is torchvision's CenterCrop."""
    down, across = max(height - image.height, 0), max(width - image.width, 0)
    image = ImageOps.expand(image, (across // 2, down // 2, (across + 1) // 2, (down + 1) // 2), fill)
    top, left = round((image.height - height) / 2.0), round((image.width - width) / 2.0)
    return image.crop((left, top, left + width, top + height))


def keep_ratio(image, height, width, choose, kind):
    """timm's ResizeKeepRatio."""
    ratio = choose(image.height / height, image.width / width)
    return image.resize((round(image.width / ratio), round(image.height / ratio)), FILTERS[kind])


def evaluated(image, out, part, mode, mean, kind):
    height, width = (math.floor(side / part) for side in out)
    if mode == "squash":
        image = image.resize((width, height), FILTERS[kind])
    elif mode == "border":
        image = keep_ratio(image, height, width, max, kind)
    elif height != width:
        image = keep_ratio(image, height, width, min, kind)
    elif image.width <= image.height:
        image = image.resize((width, int(width * image.height / image.width)), FILTERS[kind])
    else:
        image = image.resize((int(width * image.width / image.height), width), FILTERS[kind])
    fill = tuple(round(255 * value) for value in mean)
    return center_crop(image, out[0], out[1], fill if image.mode == "RGB" else fill[0])


# Height and width before and after: smaller and larger, one side only, narrower than a filter, tall and wide.
SIZES = [(50, 70, 25, 31), (20, 15, 37, 64), (33, 47, 33, 20), (47, 33, 20, 33), (90, 120, 7, 9), (64, 64, 16, 17),
         (3, 2, 5, 6), (1, 1, 4, 4), (200, 30, 21, 29), (200, 60, 40, 40), (61, 200, 60, 61), (300, 40, 2, 41),
         (19, 23, 19, 23), (37, 41, 36, 90)]
OUTS = [((24, 24), 0.875), ((24, 24), 1.0), ((25, 32), 0.9), ((31, 31), 0.965)]
MEAN = [0.485, 0.456, 0.406]

cases = []
for height, width, to_height, to_width in SIZES:
    for channels in (1, 3):
        name = f"{height}x{width}x{channels}"
        for kind in FILTERS:
            orders = {order: fnv1a(resized(image_of(name, height, width, channels), to_height, to_width, kind,
                                           order).tobytes()) for order in ("pillow13", "pillow12")}
            cases.append({"image": [channels, height, width], "to": [to_height, to_width], "filter": kind, **orders})
evaluations = []
for height, width in ((40, 61), (61, 40), (53, 53), (150, 31)):
    for channels in (1, 3):
        image = image_of(f"{height}x{width}x{channels}", height, width, channels)
        for mode in ("center", "squash", "border"):
            for out, part in OUTS:
                kind = "bicubic" if mode == "center" else "lanczos" if mode == "squash" else "bilinear"
                result = evaluated(image, out, part, mode, MEAN, kind)
                assert result.size == (out[1], out[0])
                evaluations.append({"image": [channels, height, width], "to": list(out), "crop_pct": part,
                                    "crop_mode": mode, "filter": kind, "pillow13": fnv1a(result.tobytes())})
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/golden/resize.json")
with open(path, "w") as file:
    lines = [",\n".join("  " + json.dumps(case) for case in part) for part in (cases, evaluations)]
    file.write(f'{{"pillow": "{PIL.__version__}", "mean": {json.dumps(MEAN)},\n"resize": [\n{lines[0]}\n],\n'
               f'"evaluate": [\n{lines[1]}\n]}}\n')
print(f"{len(cases)} + {len(evaluations)} cases by Pillow {PIL.__version__}")
