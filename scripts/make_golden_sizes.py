#!/usr/bin/env python3
"""Generates tests/golden/other_sizes.json: logits of swin, vit and dinov2 of timm with weights that were made for another size of windows,
patches or images, changed by the rule of the library that the weights are of.

    python3 scripts/make_golden_sizes.py

No weights are stored: scripts/golden_tensors.py computes every tensor of the file from its name. PyTorch computes in float64.
"""
import json
import math
import pathlib
import re
import sys

try:
    import numpy
    import timm
    import torch
    from torch.nn import functional
    from timm.models import swin_transformer, swin_transformer_v2, vision_transformer
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch timm)")
    sys.exit(0)

from golden_draws import draws
from golden_tensors import tensor

CLASSES = 10
POSITIONS = 300  # positions of the formula are small: without this factor they would hardly count
BUFFERS = ("relative_position_index", "relative_coords_table", "attn_mask", "k_bias")


def tensor_of(name, shape):
    if name == "input":
        u = (draws(name, math.prod(shape)) >> numpy.uint64(40)).astype("float64") * 2 / 2**24 - 1
        return torch.from_numpy(u.astype("float32").reshape(shape)).double()
    return tensor(name, shape).double() * (POSITIONS if name.endswith("pos_embed") else 1)


def made(name, **how):
    return timm.create_model(name, num_classes=CLASSES, **how).eval()


def values_of(shapes):
    return {name: tensor_of(name, shape) for name, shape in shapes.items()}


def shapes_of(model):
    return {name: tuple(value.shape) for name, value in model.state_dict().items() if not name.endswith(BUFFERS)}


def by_timm(filter_fn, source, target):
    """The file of one network of timm in another one."""
    shapes = shapes_of(source)
    return shapes, filter_fn(values_of(shapes), target)


def by_microsoft(source, target):
    """The names of the authors, and the resize of their load_pretrained()."""
    def theirs(name):
        name = re.sub(r"layers\.(\d)\.downsample", lambda found: f"layers.{int(found[1]) - 1}.downsample", name)
        return name.replace("head.fc.", "head.")
    names = {theirs(name): name for name in shapes_of(source)}
    shapes = {own: shapes_of(source)[name] for own, name in names.items()}
    wanted, state = shapes_of(target), {}
    for own, value in values_of(shapes).items():
        name = names[own]
        if name.endswith("relative_position_bias_table") and value.shape[0] != wanted[name][0]:
            old, new = (math.isqrt(n) for n in (value.shape[0], wanted[name][0]))
            grid = value.float().T.reshape(1, -1, old, old)
            value = functional.interpolate(grid, size=(new, new), mode="bicubic").reshape(-1, new * new).T
        state[name] = value
    return shapes, state


def by_meta(source, target, chunks):
    """The names of the authors of DINOv2, whose network has all positions and resizes them in each step."""
    shapes = {"mask_token": (1, source.embed_dim)}
    registers = source.reg_token is not None
    for name, shape in shapes_of(source).items():
        if name.startswith("head."):
            continue
        name = name.replace("reg_token", "register_tokens")
        if chunks:
            name = re.sub(r"^blocks\.(\d+)", lambda found: f"blocks.{int(found[1]) // 3}.{found[1]}", name)
        shapes[name] = (1, shape[1] + 1, shape[2]) if name == "pos_embed" and registers else shape
    values = values_of(shapes)
    state = {re.sub(r"^blocks\.\d+\.(\d+)\.", r"blocks.\1.", name): value for name, value in values.items() if name != "mask_token"}
    positions = state.pop("pos_embed").float()
    first, grid = positions[:, :1], positions[:, 1:]
    old, new = math.isqrt(grid.shape[1]), target.patch_embed.grid_size
    how = {"size": new, "antialias": True} if registers else {"scale_factor": tuple(float(n + 0.1) / old for n in new)}
    grid = functional.interpolate(grid.reshape(1, old, old, -1).permute(0, 3, 1, 2), mode="bicubic", **how)
    assert grid.shape[-2:] == new
    grid = grid.permute(0, 2, 3, 1).flatten(1, 2)
    if registers:  # timm's network gives positions to patches alone
        state["cls_token"] = state["cls_token"] + first
        state["reg_token"] = state.pop("register_tokens")
    state["pos_embed"] = grid if registers else torch.cat((first, grid), 1)
    head = {name: tensor_of(name, shape) for name, shape in shapes_of(target).items() if name.startswith("head.")}
    return shapes, state | head


SWIN, SWIN_V2 = "swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256"
TABLES, COORDINATES, PATCHES = (m.checkpoint_filter_fn for m in (swin_transformer, swin_transformer_v2, vision_transformer))


def case(model, origin, keys, images, target, source_keys, source_images, fitted):
    """keys: of our network; source_keys: of that which the file is of."""
    return {"model": model, "origin": origin, "keys": keys, "image": images, "source_keys": source_keys, "source_image": source_images,
            "target": target, "fitted": fitted}


def cases():
    wide, timms = {"img_size": 384, "window_size": 12}, {"window_rule": "timm"}
    for origin, images, fit in (("timm", (72, 64), lambda s, t: by_timm(TABLES, s, t)), ("microsoft", (64, 64), by_microsoft)):
        target = made(SWIN, img_size=images)
        yield case("swin_t", origin, timms, images, target, {"window": 12}, (384, 384), fit(made(SWIN, **wide), target))
    images = (96, 96)
    target = made(SWIN, img_size=images, window_size=12)
    yield case("swin_t", "timm", timms | {"window": 12}, images, target, {}, (224, 224), by_timm(TABLES, made(SWIN), target))
    images = (96, 64)
    target = made(SWIN_V2, img_size=images)
    yield case("swin_v2_t", "timm", timms, images, target, {}, (256, 256), by_timm(COORDINATES, made(SWIN_V2), target))
    windows = (8, 8, 8, 4)
    target = made(SWIN_V2, img_size=images, window_size=12, pretrained_window_sizes=windows)
    yield case("swin_v2_t", "timm", timms | {"window": 12, "trained_windows": windows}, images, target, {}, (256, 256),
               by_timm(COORDINATES, made(SWIN_V2), target))
    images, name = (64, 64), "vit_tiny_patch16_224"
    for old, new in ((8, 16), (16, 32), (14, 16), (32, 32)):
        before = images if old == new else (4 * old, 4 * old)
        target, source = made(name, img_size=images, patch_size=new), made(name, img_size=before, patch_size=old)
        yield case(name, "timm", {"patch": new}, images, target, {"patch": old}, before, by_timm(PATCHES, source, target))
    images = (56, 42)
    for name in ("vit_small_patch14_dinov2", "vit_small_patch14_reg4_dinov2"):
        target = made(name, img_size=images)
        yield case(name, "meta", {}, images, target, {}, (518, 518), by_meta(made(name), target, chunks="reg4" in name))


made_cases = []
for one in cases():
    target, (shapes, state) = one.pop("target").double(), one.pop("fitted")
    left = target.load_state_dict({name: value.double() for name, value in state.items()}, strict=False)
    assert not left.unexpected_keys and all(name.endswith(BUFFERS) for name in left.missing_keys), left
    with torch.no_grad():
        logits = target(tensor_of("input", (1, 3, *one["image"])))
    changed = [name for name, value in state.items() if name in shapes and tuple(shapes[name]) != tuple(value.shape)]
    print(f"{one}: {len(changed)} tensors of other shapes, logits to {logits.abs().max():.4f}", flush=True)
    made_cases.append(json.dumps(one | {"logits": [float(f"{value:.9g}") for value in logits.flatten().tolist()]}))
path = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/other_sizes.json"
made_by = f"scripts/make_golden_sizes.py with PyTorch {torch.__version__}, timm {timm.__version__}"
path.write_text(json.dumps({"made_by": made_by, "positions": POSITIONS})[:-1] + ', "cases": [\n' + ",\n".join(made_cases) + "\n]}\n")
