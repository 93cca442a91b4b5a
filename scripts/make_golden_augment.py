#!/usr/bin/env python3
"""Generates tests/golden/augment.json: what the transforms of torchvision and timm make of a small image, for given draws.

    python3 scripts/make_golden_augment.py        # with torch, torchvision 0.15 or later (transforms.v2), timm and Pillow

Element i of the image NAME is splitmix64(FNV-1a(NAME) + i) mod 256 / 255, in float32: channels x height x width.
tests/engine/data/golden_augment_test.cc makes the same image and compares its own result with the stored one. Each
value is stored in 1/10000.
"""
import json
import math
import os
import sys

from golden_draws import fnv1a, splitmix64

try:
    import numpy
    import torch
    from PIL import Image
    from timm.data import auto_augment as timm_policies
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch torchvision timm)")
    sys.exit(0)


def image(name, channels, height, width):
    values = [splitmix64(fnv1a(name) + i) % 256 for i in range(channels * height * width)]
    return (torch.tensor(values, dtype=torch.float32) / 255).reshape(channels, height, width)


def shear(x, horizontal, vertical):
    degrees = [math.degrees(math.atan(horizontal)), math.degrees(math.atan(vertical))]
    return functional.affine(x, angle=0.0, translate=[0, 0], scale=1.0, shear=degrees, center=[0, 0])


def translate(x, right, down):
    return functional.affine(x, angle=0.0, translate=[right, down], scale=1.0, shear=[0.0, 0.0])


OPERATIONS = {
    "brightness": functional.adjust_brightness,
    "contrast": functional.adjust_contrast,
    "saturation": functional.adjust_saturation,
    "hue": functional.adjust_hue,
    "sharpness": functional.adjust_sharpness,
    "posterize": lambda x, bits: functional.posterize(x, int(bits)),
    "solarize": functional.solarize,
    "autocontrast": lambda x, _: functional.autocontrast(x * 0.5 + 0.25),
    "equalize": lambda x, _: functional.equalize(x),
    "shear_x": lambda x, slope: shear(x, slope, 0.0),
    "shear_y": lambda x, slope: shear(x, 0.0, slope),
    "translate_x": lambda x, pixels: translate(x, int(pixels), 0),
    "translate_y": lambda x, pixels: translate(x, 0, int(pixels)),
    "rotate": functional.rotate,
    "invert": lambda x, _: functional.invert(x),
    "grey": lambda x, _: functional.rgb_to_grayscale(x, 3),
    "blur": lambda x, sigma: functional.gaussian_blur(x, [9, 9], [sigma, sigma]),
    "affine": lambda x, scale: functional.affine(x, 20.0, [2, -1], scale, [10.0, 0.0]),
    "affine_bilinear": lambda x, scale: functional.affine(
        x, -35.0, [1, 1], scale, [-8.0, 0.0], interpolation=functional.InterpolationMode.BILINEAR),
}
CASES = [
    ("brightness", 0.6), ("brightness", 1.9), ("contrast", 0.5), ("contrast", 1.8), ("saturation", 0.3),
    ("saturation", 1.7), ("hue", 0.2), ("hue", -0.43), ("sharpness", 0.1), ("sharpness", 1.9), ("posterize", 3),
    ("posterize", 7), ("solarize", 0.4), ("solarize", 0.7), ("autocontrast", 0), ("equalize", 0), ("shear_x", 0.27),
    ("shear_x", -0.09), ("shear_y", 0.3), ("shear_y", -0.15), ("translate_x", 3), ("translate_x", -2),
    ("translate_y", 2), ("translate_y", -4), ("rotate", 9), ("rotate", -27),
    ("invert", 0), ("grey", 0), ("blur", 0.4), ("blur", 1.9), ("affine", 0.8), ("affine", 1.3), ("affine_bilinear", 0.9),
    ("affine_bilinear", 1.2),
]


def stored(x):
    return [round(value * 10000) for value in x.flatten().tolist()]


def rand_augment_strengths():
    """The strength of each operation of RandAugment at a few magnitudes, for an image of 224x160."""
    table = {}
    for name, (strengths, signed) in v2.RandAugment._AUGMENTATION_SPACE.items():
        if name in ("Identity", "AutoContrast", "Equalize"):
            continue
        values = strengths(31, 160, 224)
        table[name] = [float(values[magnitude]) for magnitude in (0, 9, 14, 15, 23, 30)]
    return table


def strengths_of(space, bins):
    """The strengths of a policy's operations at each bin, for an image of 224x160."""
    table = {}
    for name, (strengths, signed) in space.items():
        values = strengths(bins, 160, 224)
        if values is not None:
            table[name] = [float(value) for value in values]
    return table


def timm_cases():
    """Operations of timm on an image of 8 bits: their values in 0..255 at a magnitude, with the positive sign."""
    timm_policies.random.random = lambda: 0.0
    pixels = (image("augment", 3, 9, 11) * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    picture = Image.fromarray(pixels)
    cases = []
    for index, name in enumerate(sorted(timm_policies.NAME_TO_OP)):
        if name in ("TranslateX", "TranslateY", "GaussianBlurRand"):  # of no policy; drawn twice
            continue
        for magnitude in (3, 8):
            bicubic = (index + magnitude) % 2 == 0
            level = timm_policies.LEVEL_TO_ARG[name]
            values = level(magnitude, {}) if level else ()
            result = timm_policies.NAME_TO_OP[name](
                picture, *values, fillcolor=(124, 116, 104),
                resample=Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR)
            cases.append({"operation": name, "magnitude": magnitude, "bicubic": bicubic,
                          "result": numpy.asarray(result).transpose(2, 0, 1).flatten().tolist()})
    return cases


def mixed(transform, **draws):
    batch = torch.stack([image(f"mix{i}", 3, 5, 6) for i in range(3)])
    transform.make_params = lambda _: draws
    images, labels = transform(batch, torch.arange(3))
    return {"images": stored(images), "labels": stored(labels)}


golden = {"cases": []}
for channels, height, width in ((3, 7, 8), (1, 18, 21)):
    x = image("augment", channels, height, width)
    for name, value in CASES:
        if channels == 1 and (name, value) not in (("contrast", 0.5), ("equalize", 0), ("sharpness", 0.1)):
            continue
        golden["cases"].append({"operation": name, "value": value, "image": [channels, height, width],
                                "result": stored(OPERATIONS[name](x, value))})
golden["rand_augment_strengths"] = rand_augment_strengths()
golden["strengths"] = {"AutoAugment": strengths_of(v2.AutoAugment._AUGMENTATION_SPACE, 10),
                       "TrivialAugmentWide": strengths_of(v2.TrivialAugmentWide._AUGMENTATION_SPACE, 31),
                       "AugMix": strengths_of(v2.AugMix._AUGMENTATION_SPACE, 10)}
golden["timm"] = timm_cases()
golden["mixup"] = {"own": 0.3, **mixed(v2.MixUp(num_classes=3), lam=0.3)}
golden["cutmix"] = {"box": [1, 2, 4, 5], **mixed(v2.CutMix(num_classes=3), box=(1, 2, 4, 5), lam_adjusted=1 - 9 / 30)}

path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "augment.json")
with open(path, "w", encoding="utf-8") as file:
    file.write("{\n")
    parts = [f'"{key}": ' + ("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in value) + "\n]"
                             if isinstance(value, list) else json.dumps(value, separators=(",", ":")))
             for key, value in golden.items()]
    file.write(",\n".join(parts) + "\n}\n")
