#!/usr/bin/env python3
"""Generates tests/golden/<model>.json: losses, outputs and gradients of PyTorch that this project's networks must reproduce.

    /usr/bin/python3 scripts/make_golden.py                       # after apt-get install python3-torch python3-torchvision
    python3 scripts/make_golden.py convnext_atto                  # the networks of timm, and torchvision's new ones: from PyPI
    /usr/bin/python3 scripts/make_golden.py --safetensors DIR     # also the weights, as DIR/<model>.safetensors

No weights are stored, because every tensor is derived from its name. With h = FNV-1a(name), 64 bits, element i is
    k = splitmix64(h + i) >> 40;   u = 2 k / 2^24 - 1        in [-1, 1), exact in float32
and the tensor's values are, in float32 arithmetic,
    two or more dimensions       u * sqrt(6 / fan_in),  fan_in = elements of one output (kaiming uniform)
    batch norm's weight and running_var     1 + u / 4
    biases and running_mean      u * 0.1
    "input"                      u
and label n is splitmix64(FNV-1a("labels") + n) mod classes. tests/golden/golden.h implements the same in C++.
PyTorch computes in float64 from these float32 values, so the stored values are exact to the digits shown.

"scaled" of a file has factors of tensors by the ends of their names.

Files of the networks in SAMPLED have the gradients and running statistics of some tensors only, and evaluations at other sizes.
"""
import argparse
import json
import math
import os
import struct
import sys

from golden_draws import draws

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("models", nargs="*", default=[])
parser.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "..", "tests", "golden"))
parser.add_argument("--safetensors", default="", metavar="DIR")
options = parser.parse_args()

try:
    import numpy
    import torch
    import torchvision
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (apt-get install python3-torch python3-torchvision)")
    sys.exit(0)

CLASSES = 10
SAMPLES = 8  # elements stored of each tensor


def tensor(name, shape):
    count = int(numpy.prod(shape))
    u = ((draws(name, count) >> numpy.uint64(40)).astype(numpy.float64) * 2 / 2**24 - 1).astype(numpy.float32)
    one = numpy.float32(1)
    if name == "input":
        values = u
    elif name.endswith("running_var") or (len(shape) == 1 and name.endswith("weight")):
        values = one + u * numpy.float32(0.25)
    elif len(shape) == 1:
        values = u * numpy.float32(0.1)
    else:
        values = u * numpy.float32(math.sqrt(6 / (count // shape[0])))
    return values.reshape(shape)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, CLASSES)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(functional.relu(self.fc2(functional.relu(self.fc1(x)))))


class Separable(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False)
        self.bn1 = nn.BatchNorm2d(inputs)
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = functional.relu(self.bn1(self.depthwise(x)))
        return functional.relu(self.bn2(self.pointwise(x)))


class MobileNetV1(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        widths = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
        blocks, inputs = [], 32
        for outputs, stride in widths:
            blocks.append(Separable(inputs, outputs, stride))
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(1024, CLASSES)

    def forward(self, x):
        x = self.blocks(functional.relu(self.bn1(self.conv1(x))))
        return self.fc(x.mean((2, 3)))


MODELS = {
    "lenet": (LeNet, (4, 1, 28, 28)),
    "resnet18": (lambda: torchvision.models.resnet18(num_classes=CLASSES), (4, 3, 64, 64)),
    "mobilenet_v1": (MobileNetV1, (4, 3, 64, 64)),
}
# Models of torchvision, without dropout. Few elements of each tensor keep the files small.
OF_TORCHVISION = {
    "vgg11_bn": (2, 3, 32, 32),
    "mobilenet_v2": (4, 3, 64, 64),
    "densenet121": (4, 3, 64, 64),
    "googlenet": (4, 3, 64, 64),
    "mobilenet_v3_small": (4, 3, 64, 64),
    "mobilenet_v3_large": (4, 3, 64, 64),
    "efficientnet_b0": (4, 3, 64, 64),
    "convnext_tiny": (2, 3, 64, 64),
    "vit_b_16": (2, 3, 64, 64),
    "swin_t": (2, 3, 72, 64),  # windows and merged tokens need padding
    "swin_v2_t": (2, 3, 64, 64),
}
# Those of timm.
OF_TIMM = {
    "vit_tiny_patch16_224": (2, 3, 48, 32),
    "deit_tiny_distilled_patch16_224": (2, 3, 32, 32),
    "deit3_small_patch16_224": (2, 3, 32, 32),
    "vit_small_patch14_dinov2": (2, 3, 28, 28),
    "vit_small_patch14_reg4_dinov2": (2, 3, 28, 28),
}
COMPUTED = ("num_batches_tracked", "relative_position_index", "relative_coords_table")  # buffers that are no weights
FEW_SAMPLES = 2

# Networks of torchvision and timm of which a few tensors are stored: our name, timm's if it is timm's.
SAMPLED = {
    "resnext50_32x4d": None,
    "wide_resnet50_2": None,
    "regnet_y_400mf": None,
    "efficientnet_b5": None,
    "efficientnet_v2_s": None,
    "efficientnet_v2_m": None,
    "resnet18d": "resnet18d",
    "resnet50d": "resnet50d",
    "convnext_atto": "convnext_atto",
    "convnext_v2_atto": "convnextv2_atto",
    "convnext_v2_tiny": "convnextv2_tiny",
    "efficientnet_lite0": "tf_efficientnet_lite0",
    "mobilenet_v4_conv_small": "mobilenetv4_conv_small",
    "mobilenet_v4_conv_medium": "mobilenetv4_conv_medium",
}
# Evaluated with these weights, their values grow until float32 and float64 differ by a third, in PyTorch too: only trained.
UNSTABLE = {"efficientnet_v2_s", "efficientnet_v2_m"}
STORED_TENSORS = 10
SIZE = (4, 3, 64, 64)
ODD_SIZE = (1, 3, 75, 61)
SIZE_OF_PAIR = (2, 3, 75, 61)  # for batch norm behind the pooling, which needs two values to be trained
# With weights of the formula, each bottleneck adds as much as it is given, and batch norms of 16 values amplify the rounding of float32 from
# block to block: PyTorch's own float32 logits are 5e-5 to 9e-5 off float64 (5e-6 with these factors), and gradients 3e-2 (4e-3).
SCALED = {name: {"bn3.weight": 0.25} for name in ("resnet50d", "resnext50_32x4d", "wide_resnet50_2")}
# At the size that it is made for, too.
AT_FULL_SIZE = {"efficientnet_lite0": (1, 3, 224, 224)}


def of_torchvision(name):
    if name == "googlenet":
        return torchvision.models.googlenet(num_classes=CLASSES, aux_logits=False, init_weights=False, dropout=0)
    if name == "densenet121":
        return torchvision.models.densenet121(num_classes=CLASSES)
    if name == "vit_b_16":
        return torchvision.models.vit_b_16(num_classes=CLASSES, image_size=OF_TORCHVISION[name][2])
    model = getattr(torchvision.models, name)(num_classes=CLASSES)
    if name.startswith("vgg"):
        model.avgpool = nn.Identity()  # small images enter the classifier without pooling
        model.classifier[0] = nn.Linear(512, 4096)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return model


def sampled_of_timm(name):
    import timm

    return timm.create_model(SAMPLED[name], num_classes=CLASSES)


for key, source in SAMPLED.items():
    MODELS[key] = (lambda key=key, source=source: sampled_of_timm(key) if source else of_torchvision(key), SIZE)
for key, shape in OF_TORCHVISION.items():
    MODELS[key] = (lambda key=key: of_torchvision(key), shape)


def of_timm(name):
    try:
        import timm
    except ImportError:
        sys.exit(f"make_golden: {name} needs timm (pip install timm)")
    return timm.create_model(name, num_classes=CLASSES, img_size=OF_TIMM[name][2:])


for key, shape in OF_TIMM.items():
    MODELS[key] = (lambda key=key: of_timm(key), shape)


def summary(values, samples=SAMPLES):
    """Norm, sum and `samples` evenly spaced elements: enough to detect a wrong tensor."""
    flat = values.detach().double().flatten()
    step = max(1, len(flat) // samples)
    few = {"shape": list(values.shape)} if samples == SAMPLES else {"samples": samples}
    digits = (lambda v: float(v)) if samples == SAMPLES else (lambda v: float(f"{float(v):.9g}"))
    return few | {
        "norm": digits(flat.norm()),
        "sum": digits(flat.sum()),
        "step": step,
        "values": [digits(v) for v in flat[::step][:samples]],
    }


def write_json(path, result, few):
    """Writes one line per tensor if there are many."""
    if not few:
        text = json.dumps(result, indent=1)
    else:
        lines = []
        for key, value in result.items():
            if isinstance(value, dict):
                inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
                lines.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
            else:
                lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
        text = "{\n" + ",\n".join(lines) + "\n}"
    with open(path, "w") as file:
        file.write(text + "\n")


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(values.astype("<f4").tobytes())


def chosen(tensors, name):
    """Of a sampled network, some of them from the first to the last."""
    pairs = list(tensors)
    if name not in SAMPLED or len(pairs) <= STORED_TENSORS:
        return pairs
    return [pairs[i * (len(pairs) - 1) // (STORED_TENSORS - 1)] for i in range(STORED_TENSORS)]


def evaluations(model, name):
    shapes = [SIZE_OF_PAIR if name.startswith("mobilenet_v4") else ODD_SIZE] + ([AT_FULL_SIZE[name]] if name in AT_FULL_SIZE else [])
    return [
        {"input_shape": list(shape), "eval_logits": model(torch.from_numpy(tensor("input", shape)).double()).flatten().tolist()}
        for shape in shapes
    ]


def make(name):
    build, shape = MODELS[name]
    few = name in OF_TORCHVISION or name in OF_TIMM or name in SAMPLED
    samples = FEW_SAMPLES if few else SAMPLES
    model = build().double()
    values = {
        key: tensor(key, tuple(value.shape))
        for key, value in model.state_dict().items()
        if not key.endswith(COMPUTED)
    }
    for key in values:
        for ending, factor in SCALED.get(name, {}).items():
            values[key] = values[key] * numpy.float32(factor) if key.endswith(ending) else values[key]
    model.load_state_dict({key: torch.from_numpy(value).double() for key, value in values.items()}, strict=False)
    images = torch.from_numpy(tensor("input", shape)).double()
    labels = torch.from_numpy((draws("labels", shape[0]) % numpy.uint64(CLASSES)).astype(numpy.int64))
    model.eval()
    with torch.no_grad():
        evaluated = model(images)
        others = evaluations(model, name) if name in SAMPLED and name not in UNSTABLE else []
    model.train()
    logits = model(images)
    loss = functional.cross_entropy(logits, labels)
    loss.backward()
    result = {
        "made_by": f"scripts/make_golden.py with PyTorch {torch.__version__}",
        "model": name,
        "classes": CLASSES,
        "input_shape": list(shape),
        "labels": labels.tolist(),
        "loss": loss.item(),
        "logits": logits.flatten().tolist(),
        "eval_logits": [] if name in UNSTABLE else evaluated.flatten().tolist(),
        "gradients": {key: summary(value.grad, samples) for key, value in chosen(model.named_parameters(), name)},
        "running_after": {
            key: summary(value, samples)
            for key, value in chosen(((k, v) for k, v in model.named_buffers() if k.endswith(("mean", "var"))), name)
        },
    }
    if name in SCALED:
        result["scaled"] = SCALED[name]
    if name in SAMPLED:
        result["made_by"] += f", torchvision {torchvision.__version__}" if SAMPLED[name] is None else f", timm's {SAMPLED[name]}"
        result["parameters"] = len(list(model.parameters()))
        result["other_sizes"] = others
    write_json(os.path.join(options.out, name + ".json"), result, few)
    if options.safetensors:
        os.makedirs(options.safetensors, exist_ok=True)
        write_safetensors(os.path.join(options.safetensors, name + ".safetensors"), values)
    print(f"{name}: loss {loss.item():.6f}, {len(result['gradients'])} gradients")


for wanted in options.models or [name for name in MODELS if name not in SAMPLED]:
    if wanted not in MODELS:
        sys.exit(f"make_golden: unknown model '{wanted}'; known: {', '.join(MODELS)}")
    make(wanted)
