#!/usr/bin/env python3
"""PyTorch fine-tunes a network of timm: the peer of `scripts/bench.sh vision_accuracy`, with its recipe.

    vision_accuracy_torch.py check                       # prints the versions; ends with 77 where a package is missing
    vision_accuracy_torch.py NETWORK FOLDER RECIPE SEED...

FOLDER is what `fleetrun export --timm` wrote; RECIPE the JSON file that tests/bench/vision_accuracy.py writes. Prints a JSON line per
seed. AdamW; layer rates and weight decay by timm's param_groups_layer_decay(), a linear warm-up and half a cosine by steps.
"""
import json
import math
import os
import sys

try:
    import numpy
    import timm
    import torch
    from PIL import Image
    from timm.optim import param_groups_layer_decay
except ImportError as error:
    print(f"SKIP: {error}; FLEET_TORCH_PYTHON names a python that has torch, timm and pillow")
    sys.exit(77)

ABOUT = f"PyTorch {torch.__version__} with timm {timm.__version__}"
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or 1))


def read(path, root):
    """uint8 [N, 3, H, W] and labels of a list of "path label"."""
    images, labels = [], []
    with open(path) as file:
        for line in file:
            name, label = line.split()
            with Image.open(os.path.join(root, name)) as image:
                images.append(numpy.asarray(image.convert("RGB")).transpose(2, 0, 1))
            labels.append(int(label))
    return torch.from_numpy(numpy.stack(images)), torch.tensor(labels)


def augment(images, padding):
    """RandomCrop(side, padding) and RandomHorizontalFlip(), a sample each."""
    side = images.shape[-1]
    padded = torch.nn.functional.pad(images, (padding,) * 4)
    out = torch.empty_like(images)
    for i, (y, x, flip) in enumerate(zip(*torch.randint(0, 2 * padding + 1, (2, len(images))).tolist(), (torch.rand(len(images)) < 0.5).tolist())):
        crop = padded[i, :, y : y + side, x : x + side]
        out[i] = crop.flip(2) if flip else crop
    return out


def rate_at(step, recipe, warmup, steps):
    if step < warmup:
        return recipe["rate"] * step / warmup
    return recipe["rate"] * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def tune(network, folder, recipe, seed, data, test):
    torch.manual_seed(seed)
    mean = torch.tensor(recipe["mean"]).view(1, 3, 1, 1)
    std = torch.tensor(recipe["std"]).view(1, 3, 1, 1)
    keys = {"img_size": recipe["side"]} if network.startswith("vit") else {}
    model = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=recipe["classes"],
                              drop_path_rate=recipe["stochastic_depth"], **keys)
    plain = model.no_weight_decay() if hasattr(model, "no_weight_decay") else ()
    groups = param_groups_layer_decay(model, recipe["weight_decay"], plain, layer_decay=recipe["layer_decay"])
    optimizer = torch.optim.AdamW(groups, lr=recipe["rate"])
    images, labels = data
    each = math.ceil(len(images) / recipe["batch"])
    warmup, steps = round(recipe["warmup_epochs"] * each), recipe["epochs"] * each
    for step in range(steps):
        if step % each == 0:
            order = torch.randperm(len(images))
            model.train()
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, recipe, warmup, steps) * group["lr_scale"]
        chosen = order[step % each * recipe["batch"] :][: recipe["batch"]]
        batch = (augment(images[chosen], recipe["padding"]).float() / 255 - mean) / std
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(batch), labels[chosen], label_smoothing=recipe["label_smoothing"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe["clip_norm"])
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model((part.float() / 255 - mean) / std) for part in test[0].split(100)])
    right = (logits.argmax(1) == test[1]).float().mean().item()
    loss = torch.nn.functional.cross_entropy(logits, test[1], label_smoothing=recipe["label_smoothing"]).item()
    return {"seed": seed, "acc1": right, "loss": loss, "about": ABOUT}


if sys.argv[1] == "check":
    print(ABOUT)
else:
    with open(sys.argv[3]) as file:
        wanted = json.load(file)
    train = read(wanted["train"], wanted["root"])
    tested = read(wanted["test"], wanted["root"])
    for number in sys.argv[4:]:
        print(json.dumps(tune(sys.argv[1], sys.argv[2], wanted, int(number), train, tested)), flush=True)
