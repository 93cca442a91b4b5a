#!/usr/bin/env python3
"""Generates tests/golden/parameter_groups.json: which parameters of timm's networks decay, and their layers.

    python3 scripts/make_golden_parameter_groups.py       # with torch and timm

Of each network: "layers", the starts of names of each layer of param_groups_layer_decay(), from the input to the head, of which
the longest that fits a name counts; and "no_decay", the parameters of more than one dimension that do not decay. Those of
one dimension never do. Both of timm's functions, param_groups_weight_decay() and param_groups_layer_decay(), must say the same.
"""
import json
import math
import os
import sys

try:
    import timm
    from timm.optim import param_groups_layer_decay, param_groups_weight_decay
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch timm)")
    sys.exit(0)

NETWORKS = [
    "resnet18", "resnet50d", "resnext50_32x4d", "wide_resnet50_2", "regnety_004", "convnext_atto", "convnext_tiny", "convnextv2_atto",
    "vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "deit3_small_patch16_224", "vit_small_patch14_reg4_dinov2",
    "swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256", "efficientnet_b0", "efficientnetv2_s", "tf_efficientnet_lite0",
    "mobilenetv2_100", "mobilenetv3_small_100", "mobilenetv3_large_100", "mobilenetv4_conv_small", "mobilenetv4_conv_medium",
]
WEIGHT_DECAY, LAYER_DECAY = 0.05, 0.5


def starts_of(names, layer_of):
    """For each layer, the shortest starts that no other layer has."""
    layers = [[] for _ in range(max(layer_of.values()) + 1)]

    def split(start, members):
        of = {layer_of[name] for name in members}
        if len(of) == 1:
            layers[of.pop()].append(start)
            return
        parts = {}
        for name in members:
            dot = name.find(".", len(start))
            parts.setdefault(name[: dot + 1] if dot >= 0 else name, []).append(name)
        for part, inside in parts.items():
            split(part, inside)

    split("", names)
    return layers


def groups_of(name):
    model = timm.create_model(name, num_classes=10)
    listed = model.no_weight_decay() if hasattr(model, "no_weight_decay") else set()
    named = {id(parameter): key for key, parameter in model.named_parameters()}
    shapes = {key: parameter.shape for key, parameter in model.named_parameters()}
    layer_of, decay_of = {}, {}
    groups = param_groups_layer_decay(model, WEIGHT_DECAY, no_weight_decay_list=listed, layer_decay=LAYER_DECAY)
    last = round(-math.log2(min(group["lr_scale"] for group in groups)))
    for group in groups:
        for parameter in group["params"]:
            layer_of[named[id(parameter)]] = last + round(math.log2(group["lr_scale"]))
            decay_of[named[id(parameter)]] = group["weight_decay"] != 0
    for group in param_groups_weight_decay(model, WEIGHT_DECAY, no_weight_decay_list=listed):
        for parameter in group["params"]:
            if decay_of[named[id(parameter)]] != (group["weight_decay"] != 0):
                sys.exit(f"{name}: timm's functions disagree about {named[id(parameter)]}")
    wrong = [key for key, shape in shapes.items() if len(shape) <= 1 and decay_of[key]]
    if wrong:
        sys.exit(f"{name}: decay in spite of one dimension: {wrong}")
    return {
        "layers": starts_of(list(shapes), layer_of),
        "no_decay": sorted(key for key, shape in shapes.items() if len(shape) > 1 and not decay_of[key]),
        "parameters": len(shapes),
    }


path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "parameter_groups.json")
with open(path, "w", encoding="utf-8") as file:
    networks = [f"{json.dumps(name)}: {json.dumps(groups_of(name), separators=(',', ':'))}" for name in NETWORKS]
    file.write("{\n" + f'"made_by": "scripts/make_golden_parameter_groups.py with timm {timm.__version__}",\n' + '"networks": {\n')
    file.write(",\n".join(networks) + "\n}\n}\n")
