#!/usr/bin/env python3
"""Generates tests/golden/class_activation.json: class activation maps (Grad-CAM, Selvaraju et al. 2017) of networks of torchvision and
timm, written out by hand: the weights of a map's channels are the means over its places of the gradient of one logit.

    python3 scripts/make_golden_cam.py

No weights are stored: scripts/golden_tensors.py computes every tensor from its name. PyTorch computes in float64.
"""
import json
import math
import pathlib
import sys

try:
    import numpy
    import timm
    import torch
    import torchvision
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch torchvision timm)")
    sys.exit(0)

from golden_draws import draws
from golden_tensors import tensor

CLASSES = 10
COMPUTED = ("num_batches_tracked", "relative_position_index", "relative_coords_table")
VALUES = 40  # stored of each map


def vgg():
    model = torchvision.models.vgg11_bn(num_classes=CLASSES)
    model.avgpool = nn.Identity()
    model.classifier[0] = nn.Linear(512 * 4, 4096)
    return model


def googlenet():
    return torchvision.models.googlenet(num_classes=CLASSES, aux_logits=False, init_weights=False)


def of_timm(name, **more):
    return lambda: timm.create_model(name, num_classes=CLASSES, **more)


def of_torchvision(name):
    return lambda: torchvision.models.get_model(name, weights=None, num_classes=CLASSES)


# name: the network, its images, the module whose output is the last map, where its channels are.
CASES = {
    "resnet18": (of_torchvision("resnet18"), (2, 3, 96, 80), lambda m: m.layer4, 1),
    "vgg11_bn": (vgg, (2, 3, 64, 64), lambda m: m.features, 1),
    "mobilenet_v3_small": (of_torchvision("mobilenet_v3_small"), (2, 3, 96, 96), lambda m: m.features, 1),
    "mobilenet_v4_conv_small": (of_timm("mobilenetv4_conv_small"), (2, 3, 96, 96), lambda m: m.blocks, 1),
    "convnext_atto": (of_timm("convnext_atto"), (2, 3, 96, 64), lambda m: m.stages, 1),
    "swin_t": (of_torchvision("swin_t"), (2, 3, 96, 64), lambda m: m.norm, 3),
    "densenet121": (of_torchvision("densenet121"), (2, 3, 96, 64), lambda m: m.features, 1),
    "googlenet": (googlenet, (2, 3, 96, 64), lambda m: m.inception5b, 1),
    "regnet_y_400mf": (of_torchvision("regnet_y_400mf"), (2, 3, 96, 64), lambda m: m.trunk_output, 1),
    "efficientnet_b0": (of_torchvision("efficientnet_b0"), (2, 3, 96, 64), lambda m: m.features, 1),
    "vit_tiny_patch16_224": (of_timm("vit_tiny_patch16_224", img_size=(48, 64)), (2, 3, 48, 64), lambda m: m.blocks[-1].norm1, 2),
    "deit_tiny_distilled_patch16_224": (of_timm("deit_tiny_distilled_patch16_224", img_size=(48, 48)), (2, 3, 48, 48),
                                        lambda m: m.blocks[-1].norm1, 2),
    "vit_small_patch14_reg4_dinov2": (of_timm("vit_small_patch14_reg4_dinov2", img_size=(42, 42)), (2, 3, 42, 42),
                                      lambda m: m.blocks[-1].norm1, 2),
}


def tensor_of(name, shape):
    if name != "input" and not name.endswith("running_var"):
        return tensor(name, shape).double()
    u = (draws(name, math.prod(shape)) >> numpy.uint64(40)).astype("float64") * 2 / 2**24 - 1
    u = torch.from_numpy(u.astype("float32").reshape(shape)).double()
    return u if name == "input" else 1 + u * 0.25


def maps(values, gradients, image, grid):
    """values, gradients: N, C, places. The map of each sample, N, height, width."""
    weights = gradients.mean(2, keepdim=True)
    small = torch.relu((weights * values).sum(1)).unflatten(1, grid)
    large = functional.interpolate(small[:, None], size=image, mode="bilinear", align_corners=False)[:, 0]
    return large / large.amax((1, 2), keepdim=True).clamp_min(1e-30)


def make(name):
    build, shape, module, axis = CASES[name]
    model = build().double().eval()
    model.load_state_dict({key: tensor_of(key, tuple(value.shape)) for key, value in model.state_dict().items()
                           if not key.endswith(COMPUTED)}, strict=False)
    kept = {}
    module(model).register_forward_hook(lambda _, __, output: kept.update(map=output))
    logits = model(tensor_of("input", shape))
    # Of random weights, the map of a class may be 0 everywhere.
    tried = [(one, *map_of(model, shape, axis, kept["map"], logits[:, one].sum())) for one in range(CLASSES)]
    classes = [max(tried, key=lambda t: (t[1][n] > 0).double().mean().item())[0] for n in range(shape[0])]
    found = torch.stack([tried[one][1][n] for n, one in enumerate(classes)])
    step = found[0].numel() // VALUES
    print(f"{name}: map {tried[0][2]}, classes {classes}, positive {(found > 0).double().mean():.2f}")
    return {"model": name, "input_shape": list(shape), "classes": classes, "step": step,
            "logits": [float(f"{v:.9g}") for v in logits.flatten().tolist()],
            "values": [[float(f"{v:.9g}") for v in one.flatten()[::step].tolist()] for one in found]}


def map_of(model, shape, axis, values, logits):
    gradient, = torch.autograd.grad(logits, values, retain_graph=True)
    if axis == 2:  # tokens, of which the last are patches
        patch = model.patch_embed.patch_size[0]
        grid = (shape[2] // patch, shape[3] // patch)
        places = grid[0] * grid[1]
        values, gradient = (t[:, -places:].transpose(1, 2) for t in (values, gradient))
    else:
        if axis == 3:
            values, gradient = values.permute(0, 3, 1, 2), gradient.permute(0, 3, 1, 2)
        grid = tuple(values.shape[2:])
        values, gradient = values.flatten(2), gradient.flatten(2)
    return maps(values, gradient, shape[2:], grid), grid


path = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/class_activation.json"
cases = [json.dumps(make(name)) for name in CASES]
made_by = f"scripts/make_golden_cam.py with PyTorch {torch.__version__}, torchvision {torchvision.__version__}, timm {timm.__version__}"
path.write_text(json.dumps({"made_by": made_by})[:-1] + ', "cases": [\n' + ",\n".join(cases) + "\n]}\n")
