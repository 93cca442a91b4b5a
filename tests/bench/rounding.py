#!/usr/bin/env python3
"""The rounding errors of a training step in float32, ours and PyTorch's, against PyTorch's step in float64.

    tests/bench/rounding.py [--model NAME] [--width W] [--batches N] [--sync]

Each batch is 32 images of 32 x 32; every step starts with the same weights. Loss: the absolute error. Gradients: the error of all of
them, by the norm of float64's. Prints both for each batch, then the ratios of their root mean squares. --sync: also two ranks with
sync_batch_norm. The interpreter needs torch and torchvision.
"""
# Builds: fleetrun fleet-worker
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy
    import torch
    import torchvision
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (apt-get install python3-torch python3-torchvision)")
    sys.exit(0)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
BATCH, SIDE, CLASSES, DEVIATION = 32, 32, 10, 0.25
RATE = 1000.0  # so large that the weights after a step are the gradient: the rounding of the old ones does not show


def png(pixels):
    """pixels: height x width x 3 bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        flat = values.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(flat)]}
        data += flat
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    size = struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(content[begin:end], "<f4").reshape(entry["shape"])
    return tensors


def make_batch(folder, number, random):
    """Writes the images and their list; returns the values that the network gets, and the labels."""
    labels = random.integers(0, CLASSES, BATCH)
    # Noise over a smooth picture, as photographs have.
    at = numpy.linspace(0, 6, SIDE)
    waves = numpy.sin(at[None, :, None, None] * random.uniform(0.3, 2, (BATCH, 1, 1, 3)) +
                      at[None, None, :, None] * random.uniform(0.3, 2, (BATCH, 1, 1, 3)))
    pixels = numpy.clip(128 + 70 * waves + 25 * random.standard_normal((BATCH, SIDE, SIDE, 3)), 0, 255).astype(numpy.uint8)
    with open(os.path.join(folder, f"batch{number}.txt"), "w") as lines:
        for i in range(BATCH):
            name = f"batch{number}_{i}.png"
            with open(os.path.join(folder, name), "wb") as file:
                file.write(png(pixels[i]))
            lines.write(f"{name} {labels[i]}\n")
    values = pixels.astype(numpy.float32) * numpy.float32(1 / (255 * DEVIATION))
    return numpy.ascontiguousarray(values.transpose(0, 3, 1, 2)), labels


def our_step(folder, options, number, weights, ranks):
    """The loss and the gradients of one step."""
    output = os.path.join(folder, f"run{number}_{ranks}")
    job = {
        "model": {"name": options.model, "num_classes": CLASSES, **model_keys(options)},
        "data": {"source": "image_list", "root": folder, "batch_size": BATCH // ranks, "shuffle": False, "pixels": "float32",
                 "image": {"channels": 3, "height": SIDE, "width": SIDE}, "train": {"list": f"batch{number}.txt"},
                 "std": [DEVIATION] * 3},
        "optimizer": {"name": "sgd"},
        "learning_rate": {"name": "constant", "base": RATE},
        "strategy": {"sync_batch_norm": True} if ranks > 1 else {},
        "train": {"epochs": 1, "fetch_every": 1, "evaluate_every": 0, "device": "cpu", "output": output},
        "checkpoint": {"weights": os.path.join(folder, "start.safetensors")},
    }
    file = output + ".json"
    with open(file, "w") as text:
        json.dump(job, text)
    command = [os.path.join(BIN, "fleetrun"), f"--nproc_per_node={ranks}", f"--log_dir={output}.log", file]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"rounding: {' '.join(command)} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    with open(os.path.join(output, "metrics.jsonl")) as lines:
        loss = next(event["loss"] for event in map(json.loads, lines) if event["event"] == "train")
    after = read_safetensors(os.path.join(output, "checkpoints/step_00000001/model.safetensors"))
    return loss, {name: (weights[name].astype(numpy.float64) - after[name]) / RATE for name in after}


def torch_step(model, start, values, labels, dtype):
    model = model.to(dtype)
    model.load_state_dict(start)
    model.train()
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(values).to(dtype)), torch.from_numpy(labels))
    loss.backward()
    return loss.item(), {name: one.grad.double().numpy().copy() for name, one in model.named_parameters()}


def model_keys(options):
    keys = {"dropout": 0} if "mobilenet" in options.model else {}
    if options.width != 1:
        keys["width"] = options.width
    return keys


def torch_model(options):
    settings = {"num_classes": CLASSES}
    if "mobilenet" in options.model:
        settings["dropout"] = 0
    if options.width != 1:
        settings["width_mult"] = options.width
    return getattr(torchvision.models, options.model)(**settings)


def error_of(result, exact):
    """Of the loss, and of the gradients."""
    off = sum(((result[1][name] - values)**2).sum() for name, values in exact[1].items())
    return abs(result[0] - exact[0]), (off / sum((values**2).sum() for values in exact[1].values()))**0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="mobilenet_v2")
    parser.add_argument("--width", type=float, default=0.25)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--sync", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    random = numpy.random.default_rng(1)
    model = torch_model(options)
    start = {name: values.clone() for name, values in model.state_dict().items()}
    weights = {name: values.numpy() for name, values in start.items() if values.dtype == torch.float32}
    errors = {"ours": [], "PyTorch": []}
    if options.sync:
        errors["two ranks"] = []
    with tempfile.TemporaryDirectory() as folder:
        write_safetensors(os.path.join(folder, "start.safetensors"), weights)
        for number in range(options.batches):
            values, labels = make_batch(folder, number, random)
            exact = torch_step(model, start, values, labels, torch.float64)
            results = {"PyTorch": torch_step(model, start, values, labels, torch.float32),
                       "ours": our_step(folder, options, number, weights, 1)}
            if options.sync:
                results["two ranks"] = our_step(folder, options, number, weights, 2)
            for name, result in results.items():
                errors[name].append(error_of(result, exact))
            print(f"batch {number}: " + "; ".join(f"{name}: loss {errors[name][-1][0]:.1e}, gradients {errors[name][-1][1]:.1e}"
                                                  for name in errors), flush=True)
    for i, what in enumerate(("loss", "gradients")):
        mean = {name: numpy.sqrt(numpy.mean([error[i]**2 for error in of])) for name, of in errors.items()}
        for name in errors:
            if name != "PyTorch":
                print(f"rounding_{what}: ratio {mean[name] / mean['PyTorch']:.2f} ({name} {mean[name]:.1e}, PyTorch {mean['PyTorch']:.1e})")


main()
