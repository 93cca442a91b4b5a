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

"scaled" and "shifted" of a file have factors of tensors and then summands, by shell patterns of names. They make the gradients of networks
with batch norm comparable: the ReLUs of random weights cut half of the values, some of which are so near to 0 that the rounding of float32
decides, and each of these changes gradients by up to 1e-2; and batch norms of 16 values amplify rounding from block to block. PyTorch's own
float32 gradients are then up to 0.3 off float64. With biases in front of a ReLU shifted, and the last scale of a residual branch reduced,
they are within 1e-4 of the norm. The shifts are those of several, from 1.2 to 3, with which no value is near to 0.

Files of the networks in SAMPLED have the gradients and running statistics of some tensors only, and evaluations at other sizes.
"""
import argparse
import fnmatch
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
    "googlenet": (8, 3, 64, 64),
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
STORED_TENSORS = 10
SIZE = (4, 3, 64, 64)
SIZE_OF_V4 = (8, 3, 64, 64)  # its last batch norm has one value of each image
ODD_SIZE = (1, 3, 75, 61)
SIZE_OF_PAIR = (2, 3, 75, 61)  # for batch norm behind the pooling, which needs two values to be trained
SMALL_BRANCH = 0.25


def shifted(amount, *patterns):
    return {pattern: amount for pattern in patterns}


OF_BOTTLENECKS = ("*bn1.bias", "*bn2.bias", "*bn3.bias", "*downsample.?.bias")
OF_V4 = ("bn1.bias", "blocks.*.bn?.bias", "blocks.*.pw_exp.bn.bias", "blocks.*.dw_mid.bn.bias", "norm_head.bias")
OF_EFFICIENTNET = shifted(1, "features.*.block.[012].1.bias")  # silu: values where it is less curved
SHIFTED = {
    "resnet18": shifted(2.3, "bn1.bias", "layer*.bias"),
    "mobilenet_v1": shifted(2.4, "*bn?.bias"),
    "vgg11_bn": shifted(1.75, "features.*.bias"),
    "densenet121": shifted(2.5, "features.[dt]*.norm*.bias", "features.norm5.bias") | shifted(0.5, "features.norm0.bias"),
    "googlenet": shifted(2.85, "*.bn.bias"),
    "mobilenet_v2": shifted(3, "features.*.conv.[01].1.bias", "features.0.1.bias", "features.18.1.bias"),
    "mobilenet_v3_large": shifted(0.35, "features.*.1.bias"),
    "efficientnet_b0": OF_EFFICIENTNET,
    "efficientnet_b5": OF_EFFICIENTNET,
    "efficientnet_v2_s": OF_EFFICIENTNET,
    "efficientnet_v2_m": OF_EFFICIENTNET,
    "resnext50_32x4d": shifted(1.4, *OF_BOTTLENECKS),
    "wide_resnet50_2": shifted(2.2, *OF_BOTTLENECKS),
    "resnet18d": shifted(2.5, "bn1.bias", "conv1.[14].bias", "layer*.bias"),
    "resnet50d": shifted(1.4, "conv1.[14].bias", *OF_BOTTLENECKS),
    "regnet_y_400mf": shifted(1.7, "stem.1.bias", "*.f.[abc].1.bias", "*proj.1.bias"),
    "efficientnet_lite0": shifted(1.9, "bn?.bias", "blocks.*.bn[12].bias"),
    "mobilenet_v4_conv_small": shifted(1.4, *OF_V4),
    "mobilenet_v4_conv_medium": shifted(2.3, *OF_V4),
}
SCALED = {name: {"*bn3.weight": SMALL_BRANCH} for name in ("resnet50d", "resnext50_32x4d", "wide_resnet50_2")}
SCALED |= {name: {"features.*.block.3.1.weight": SMALL_BRANCH} for name in ("efficientnet_b0", "efficientnet_b5")}
SCALED |= {
    name: {"features.*.block.3.1.weight": SMALL_BRANCH, "features.[23].*.block.1.1.weight": SMALL_BRANCH}
    for name in ("efficientnet_v2_s", "efficientnet_v2_m")
}
SCALED["regnet_y_400mf"] = {"*.f.c.1.weight": SMALL_BRANCH}
# The losses of training steps on one batch: PyTorch's optimizer, the section of a job that is the same, and the rate.
STEPS = 20
TRAINED = {
    name: (lambda parameters, rate: torch.optim.SGD(parameters, rate, momentum=0.9, weight_decay=1e-4),
           {"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4}, rate)
    for name, rate in (("resnet18", 3e-4), ("mobilenet_v3_small", 1e-3))
} | {
    "vit_tiny_patch16_224": (lambda parameters, rate: torch.optim.AdamW(parameters, rate, weight_decay=0.05),
                             {"name": "adamw", "weight_decay": 0.05}, 2e-5)
}
# At the size that it is made for, too.
AT_FULL_SIZE = {"efficientnet_lite0": (1, 3, 224, 224)}
# Maps that windows fill, and maps that need padding or are smaller than a window.
WINDOWED = {"swin_t": [(1, 3, 448, 448), (1, 3, 96, 96)]}


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
    MODELS[key] = (lambda key=key, source=source: sampled_of_timm(key) if source else of_torchvision(key), SIZE_OF_V4 if key.startswith("mobilenet_v4") else SIZE)
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


def shapes_of_evaluations(name):
    if name not in SAMPLED:
        return WINDOWED.get(name, [])
    return [SIZE_OF_PAIR if name.startswith("mobilenet_v4") else ODD_SIZE] + ([AT_FULL_SIZE[name]] if name in AT_FULL_SIZE else [])


def evaluations(model, shapes):
    return [
        {"input_shape": list(shape), "eval_logits": model(torch.from_numpy(tensor("input", shape)).double()).flatten().tolist()}
        for shape in shapes
    ]


def steps_of(name, model, images, labels):
    """The model has its gradients, and its running statistics do not count in training."""
    optimizer, section, rate = TRAINED[name]
    optimizer = optimizer(model.parameters(), rate)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        losses.append(float(f"{loss.item():.9g}"))
        optimizer.step()
    return {"optimizer": section, "rate": rate, "losses": losses}


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
        for pattern, factor in SCALED.get(name, {}).items():
            values[key] = values[key] * numpy.float32(factor) if fnmatch.fnmatchcase(key, pattern) else values[key]
        for pattern, more in SHIFTED.get(name, {}).items():
            values[key] = values[key] + numpy.float32(more) if fnmatch.fnmatchcase(key, pattern) else values[key]
    model.load_state_dict({key: torch.from_numpy(value).double() for key, value in values.items()}, strict=False)
    images = torch.from_numpy(tensor("input", shape)).double()
    labels = torch.from_numpy((draws("labels", shape[0]) % numpy.uint64(CLASSES)).astype(numpy.int64))
    model.eval()
    with torch.no_grad():
        evaluated = model(images)
        others = evaluations(model, shapes_of_evaluations(name))
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
        "eval_logits": evaluated.flatten().tolist(),
        "gradient_norm": math.sqrt(sum(float(value.grad.square().sum()) for value in model.parameters())),
        "gradients": {key: summary(value.grad, samples) for key, value in chosen(model.named_parameters(), name)},
        "running_after": {
            key: summary(value, samples)
            for key, value in chosen(((k, v) for k, v in model.named_buffers() if k.endswith(("mean", "var"))), name)
        },
    }
    for key, changes in (("scaled", SCALED), ("shifted", SHIFTED)):
        if name in changes:
            result[key] = changes[name]
    if name in SAMPLED:
        result["made_by"] += f", torchvision {torchvision.__version__}" if SAMPLED[name] is None else f", timm's {SAMPLED[name]}"
        result["parameters"] = len(list(model.parameters()))
    if others:
        result["other_sizes"] = others
    if name in TRAINED:
        result["steps"] = steps_of(name, model, images, labels)
    write_json(os.path.join(options.out, name + ".json"), result, few)
    if options.safetensors:
        os.makedirs(options.safetensors, exist_ok=True)
        write_safetensors(os.path.join(options.safetensors, name + ".safetensors"), values)
    print(f"{name}: loss {loss.item():.6f}, {len(result['gradients'])} gradients")


for wanted in options.models or [name for name in MODELS if name not in SAMPLED]:
    if wanted not in MODELS:
        sys.exit(f"make_golden: unknown model '{wanted}'; known: {', '.join(MODELS)}")
    make(wanted)
