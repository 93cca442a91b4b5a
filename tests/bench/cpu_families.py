#!/usr/bin/env python3
"""Training steps of a network of each family of images on one core, in processor seconds: against PyTorch's step in the
better of its layouts, and against the step's convolutions, products and batch norms alone. All of them run in turns, and medians
count. A ratio above 1 is in our favour. Networks below 1.1 show the five slowest kinds of operations of their profile.

    scripts/bench.sh cpu_families [NET...] [--batch 4|16|...] [--isa best|avx2|avx512] [--dtype float32|bfloat16] [--rounds N]
                                  [--next] [--output FOLDER]

Results accumulate in FOLDER by CPU, instruction set, batch and version; --next begins with networks that are not there yet.
FLEET_TORCH_PYTHON names the interpreter that has torch and torchvision, and timm for networks that torchvision lacks. --isa avx2 limits the libraries (ONEDNN_MAX_CPU_ISA,
ATEN_CPU_CAPABILITY, MKL_ENABLE_INSTRUCTIONS); loops of fleetrun's own still use the CPU's widest vectors. Under nice -n -10 the turns
are less disturbed.
# Builds: bench_image_step
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "gpu"))

import accumulated  # noqa: E402
import report  # noqa: E402

# Those of torchvision and timm, at least one of each row of images in docs/reference/models.md.
FAMILIES = ["resnet18", "resnet50", "vgg16", "densenet121", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny",
            "vit_b_16", "vit_tiny_patch16_224", "swin_t", "googlenet", "regnet_y_400mf", "efficientnet_v2_s", "convnext_v2_atto",
            "mobilenet_v4_conv_small"]
BAR = 1.1
ENOUGH = 0.9  # of the products alone
LAYOUTS = ["contiguous", "channels_last"]
ISA = {
    "best": {},
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "avx512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "DNNL_MAX_CPU_ISA": "AVX512_CORE", "ATEN_CPU_CAPABILITY": "avx512"},
}


class Stepper:
    """A process that runs one step per line of its input."""

    def __init__(self, argv, env, limit):
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.end = time.monotonic() + limit
        line = self.process.stdout.readline().strip()
        while line and line != "ready" and not line.startswith("SKIP"):
            line = self.process.stdout.readline().strip()
        self.skipped = line[6:] if line.startswith("SKIP") else ""
        self.about = "" if line != "ready" else self.process.stdout.readline().strip()
        if not self.about and not self.skipped:
            raise RuntimeError((self.process.stderr.read().strip().splitlines() or ["no output"])[-1])

    def ask(self, command):
        if time.monotonic() > self.end:
            raise RuntimeError("no time left")
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def seconds(self, command):
        self.ask(command)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError((self.process.stderr.read().strip().splitlines() or ["it ended"])[-1])
        return float(line)

    def text(self, command):
        self.ask(command)
        return "".join(iter(self.process.stdout.readline, "end\n"))

    def close(self):
        self.process.kill()
        self.process.communicate()


def cpu_name():
    words = {}
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            words.setdefault(key.strip(), value.strip())
    return f"{words.get('model name', 'cpu')} {words.get('cpu family', '')}-{words.get('model', '')}"


def version():
    worker = os.path.join(BIN, "fleet-worker")
    ended = subprocess.run([worker, "--version"], capture_output=True, text=True) if os.access(worker, os.X_OK) else None
    if ended and ended.returncode == 0:
        return ended.stdout.split()[-1]
    with open(os.path.join(ROOT, "VERSION")) as file:
        return file.read().strip()


def measure(network, options, env):
    """A row of results; None if ours fails."""
    steppers = []
    arguments = [network, str(options.batch)]
    try:
        dtype = [] if options.dtype == "float32" else [options.dtype]
        ours = Stepper([os.path.join(BIN, "bench_image_step"), *arguments, *dtype], env, options.limit)
        steppers.append(ours)
        peer = Stepper([PYTHON, "-B", os.path.join(ROOT, "tests/bench/peers/vision_cpu.py"), *arguments, options.dtype], env, options.limit)
        steppers.append(peer)
        print(f"{network}: {ours.about}" + (f"; {peer.about}" if peer.about else f"; PyTorch: {peer.skipped}"), flush=True)
        commands = [(ours, "step"), (ours, "products")] + ([(peer, layout) for layout in LAYOUTS] if peer.about else [])
        seconds = {command: [] for _, command in commands}
        for number in range(options.rounds + 1):  # the first warms up
            for stepper, command in commands:
                taken = stepper.seconds(command)
                if number:
                    seconds[command].append(taken)
        return row_of(network, options, seconds, ours, peer)
    except (RuntimeError, OSError) as error:
        print(f"{network}: FAILED: {error}", flush=True)
        return None
    finally:
        for stepper in steppers:
            stepper.close()


def row_of(network, options, seconds, ours, peer):
    median = {command: statistics.median(values) for command, values in seconds.items()}
    row = {"network": network, "batch": options.batch, "isa": options.isa, "rounds": options.rounds, "seconds": median,
           "about": [ours.about, peer.about], "ratio": None, "layout": None,
           "products": statistics.median(b / a for a, b in zip(seconds["step"], seconds["products"]))}
    if peer.about:
        row["layout"] = min(LAYOUTS, key=lambda layout: median[layout])
        row["ratio"] = statistics.median(b / a for a, b in zip(seconds["step"], seconds[row["layout"]]))
        if row["ratio"] < BAR:
            row["slowest"] = accumulated.slowest_operations(ours.text("profile"))
    return row


def verdict(row):
    if row["ratio"] is None:
        return "-"
    if row["ratio"] >= BAR:
        return "met"
    return "at its products" if row["products"] >= ENOUGH else "MISSED"


def show(results):
    lines = []
    for row in results.by_ratio():
        peer = f"{row['seconds'][row['layout']]:.3f} {row['layout']}" if row["layout"] else "-"
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
        lines.append([row["network"], row["batch"], f"{row['seconds']['step']:.3f}", peer, ratio, f"{row['products']:.2f}", verdict(row)])
    print(report.table(["network", "batch", "s a step", "PyTorch", "ratio", "products alone", f">= {BAR}, or >= {ENOUGH} of the products"],
                       lines))
    results.print_slowest()


parser = argparse.ArgumentParser(prog="cpu_families")
parser.add_argument("networks", nargs="*")
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--isa", choices=list(ISA), default="best")
parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--next", action="store_true")
parser.add_argument("--limit", type=float, default=500, help="seconds a network")
parser.add_argument("--output", default="output/cpu_families")
options = parser.parse_args()
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
PYTHON = os.environ.get("FLEET_TORCH_PYTHON") or os.environ.get("FLEET_PYTHON") or "/usr/bin/python3"
environment = {**os.environ, **ISA[options.isa], "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
settings = f"{options.isa} b{options.batch} {version()}" + ("" if options.dtype == "float32" else f" {options.dtype}")
results = accumulated.Results(options.output, f"{cpu_name()} {settings}")
failed = 0
for network in accumulated.wanted(options.networks, FAMILIES, options.next, results.rows, "cpu_families"):
    row = measure(network, options, environment)
    if row is None:
        failed += 1
        continue
    results.add(network, row)
    ratio = "none" if row["ratio"] is None else f"{row['ratio']:.2f}"
    print(f"{network}: ratio {ratio}, of its products alone {row['products']:.2f}", flush=True)
show(results)
print(results.summary("cpu_families"))
sys.exit(1 if failed else 0)
