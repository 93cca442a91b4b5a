#!/usr/bin/env python3
"""safetensors.torch saving ResNet-50's state: the peer of `scripts/bench.sh checkpoint`.

    checkpoint_torch.py FOLDER [ROUNDS]

Saves model and momentum, each a file that is synced, and the folder; reads the model back into the network. Prints the best of
ROUNDS in seconds, as bench_checkpoint_files does.
"""
import os
import shutil
import sys
import time

try:
    import safetensors
    import safetensors.torch
    import torch
    import torchvision
except ImportError as error:
    print(f"SKIP: {error.name} is not installed for {sys.executable} (pip install safetensors torch torchvision)")
    sys.exit(0)

root, rounds = sys.argv[1] + "/torch", int(sys.argv[2]) if len(sys.argv) > 2 else 3


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def save(model, momentum):
    aside = root + "/step_1.part"
    os.makedirs(aside)
    for name, tensors in (("model", model.state_dict()), ("optimizer", momentum)):
        safetensors.torch.save_file(tensors, f"{aside}/{name}.safetensors", {"format": "pt"})
        sync(f"{aside}/{name}.safetensors")
    sync(aside)
    os.rename(aside, root + "/step_1")
    sync(root)


def seconds_of(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


draw = seconds_of(torchvision.models.resnet50)
model = torchvision.models.resnet50()
momentum = {name + ".momentum": torch.zeros_like(value) for name, value in model.named_parameters()}
saved = loaded = 1e9
for _ in range(rounds):
    shutil.rmtree(root, ignore_errors=True)
    saved = min(saved, seconds_of(lambda: save(model, momentum)))
    path = root + "/step_1/model.safetensors"
    loaded = min(loaded, seconds_of(lambda: model.load_state_dict(safetensors.torch.load_file(path))))
shutil.rmtree(root, ignore_errors=True)
print(f"safetensors {safetensors.__version__} torch {torch.__version__}")
print(f"draw {draw:.4f} s\nsave {saved:.4f} s\nload {loaded:.4f} s")
