#!/usr/bin/env python3
"""Generates tests/golden/weights.json from timm and torchvision: names and shapes of their networks' tensors as a hash, config.json
files with what timm makes of them, positions of other sizes, and first convolutions of other channels.

    python3 scripts/make_golden_weights.py [FILE]
    python3 scripts/make_golden_weights.py names timm.resnet18    # the lines behind a hash
"""
import json
import os
import sys
import pathlib
import tempfile
from collections import OrderedDict

import timm
import torch
import torchvision
from timm.data import resolve_model_data_config
from timm.layers import resample_abs_pos_embed
from timm.models._hub import save_config_for_hf
from timm.models._manipulate import adapt_input_conv
from torchvision.models.vision_transformer import interpolate_embeddings

OURS_TO_TIMM = {
    "resnet18": "resnet18", "resnet50": "resnet50", "densenet121": "densenet121", "vgg11": "vgg11", "vgg11_bn": "vgg11_bn",
    "convnext_tiny": "convnext_tiny", "efficientnet_b0": "efficientnet_b0", "efficientnet_b3": "efficientnet_b3",
    "mobilenet_v2": "mobilenetv2_100", "mobilenet_v3_large": "mobilenetv3_large_100",
    "mobilenet_v3_small": "mobilenetv3_small_100", "vit_b_16": "vit_base_patch16_224", "vit_b_32": "vit_base_patch32_224",
    "resnext50_32x4d": "resnext50_32x4d", "wide_resnet50_2": "wide_resnet50_2", "regnet_y_400mf": "regnety_004",
    "regnet_y_800mf": "regnety_008_tv", "swin_t": "swin_tiny_patch4_window7_224", "swin_v2_t": "swinv2_tiny_window8_256",
    "efficientnet_v2_s": "efficientnetv2_s", "efficientnet_lite0": "tf_efficientnet_lite0",
    "convnext_atto": "convnext_atto", "convnext_v2_atto": "convnextv2_atto",
}
CONFIGS = ["resnet50.a1_in1k", "resnet50.tv2_in1k", "resnet50d.ra2_in1k", "efficientnet_b0.ra_in1k", "tf_efficientnetv2_s.in21k_ft_in1k",
           "tf_efficientnet_lite0.in1k", "mobilenetv3_large_100.miil_in21k_ft_in1k", "mobilenetv4_conv_small.e2400_r224_in1k",
           "convnext_atto.d2_in1k", "convnext_tiny.fb_in22k_ft_in1k_384", "convnextv2_atto.fcmae_ft_in1k",
           "vit_tiny_patch16_224.augreg_in21k_ft_in1k", "vit_base_patch16_224.augreg_in1k", "deit_small_patch16_224.fb_in1k",
           "deit3_small_patch16_224.fb_in1k", "vit_small_patch14_dinov2.lvd142m", "swin_tiny_patch4_window7_224.ms_in1k",
           "swinv2_tiny_window8_256.ms_in1k", "regnety_004.pycls_in1k", "vgg11_bn.tv_in1k"]


def lines_of(model):
    return sorted(f"{name} {list(tensor.shape)}" for name, tensor in model.state_dict().items()
                  if not name.endswith(("num_batches_tracked", "relative_position_index", "relative_coords_table", "attn_mask")))


def fnv(lines):
    value = 0xcbf29ce484222325
    for byte in "\n".join(lines).encode():
        value = ((value ^ byte) * 0x100000001b3) & 0xffffffffffffffff
    return f"{value:016x}"


def without_values(make):
    """Names and shapes need no values, but some networks compute some when they are made."""
    try:
        with torch.device("meta"):
            return make()
    except (NotImplementedError, RuntimeError):
        return make()


def timm_model(name, **how):
    return without_values(lambda: timm.create_model(name, **how))


def torchvision_model(name):
    return without_values(lambda: torchvision.models.get_model(name, weights=None))


def names():
    table = {"timm": {}, "torchvision": {}}
    for ours, theirs in OURS_TO_TIMM.items():
        lines = lines_of(timm_model(theirs, num_classes=1000))
        table["timm"][ours] = {"name": theirs, "tensors": len(lines), "hash": fnv(lines)}
        if ours in torchvision.models.list_models(module=torchvision.models):
            lines = lines_of(torchvision_model(ours))
            table["torchvision"][ours] = {"tensors": len(lines), "hash": fnv(lines)}
    return table


def configs():
    made = []
    for name in CONFIGS:
        model = timm_model(name)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "config.json"
            save_config_for_hf(model, path)
            config = json.loads(path.read_text())
        wanted = resolve_model_data_config(model)
        made.append({"config": config, "resolved": {key: wanted[key] for key in
                     ("input_size", "interpolation", "mean", "std", "crop_pct", "crop_mode")},
                     "num_classes": model.num_classes})
    return made


def positions():
    torch.manual_seed(3)
    cases = []
    # 14 to 24 and to 7 are images of 224 to 384 and to 112, of which every step-th value is kept.
    for prefix, old, new, width, step in ((1, 4, 6, 2, 1), (1, 4, 2, 2, 1), (0, 5, 7, 2, 1), (2, 3, 5, 2, 1), (1, 14, 24, 1, 7), (1, 14, 7, 1, 1)):
        table = torch.randn(1, prefix + old * old, width)
        case = {"prefix": prefix, "from": old, "to": new, "width": width, "step": step, "table": table.flatten().tolist()}
        case["timm"] = resample_abs_pos_embed(table, [new, new], num_prefix_tokens=prefix).flatten().tolist()[::step]
        if prefix == 1:
            state = interpolate_embeddings(new * 8, 8, OrderedDict({"encoder.pos_embedding": table}))
            case["torchvision"] = state["encoder.pos_embedding"].flatten().tolist()[::step]
        cases.append(case)
    return cases


def channels():
    torch.manual_seed(4)
    weight = torch.randn(2, 3, 2, 1)
    return {"weight": weight.flatten().tolist(),
            "adapted": {str(n): adapt_input_conv(n, weight).flatten().tolist() for n in (1, 2, 4)}}


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.8g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


if len(sys.argv) > 2 and sys.argv[1] == "names":
    library, name = sys.argv[2].split(".", 1)
    print("\n".join(lines_of((timm_model if library == "timm" else torchvision_model)(name))))
else:
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "weights.json")
    table = {"made_with": {"timm": timm.__version__, "torchvision": torchvision.__version__, "torch": torch.__version__},
             "names": names(), "configs": configs(), "positions": positions(), "channels": channels()}
    with open(path, "w") as file:
        json.dump(rounded(table), file, indent=1)
        file.write("\n")
