"""One network of each family beside PyTorch on the same card: `scripts/gpu_bench.sh families`."""
import json
import os
import statistics

import accumulated
import job
import process
import report
import switches
from job import Job

FILE = job.file_of("tests", "bench", "jobs", "resnet50.json")
# A network of each row of images in docs/reference/models.md, with the batch and type of its figures. The order is that of
# what was lost on 2026-11-27.
FAMILIES = {
    "convnext_tiny": (128, "bfloat16"),
    "mobilenet_v2": (256, "float16"),
    "efficientnet_b0": (256, "float16"),
    "mobilenet_v3_large": (256, "float16"),
    "vit_b_16": (128, "bfloat16"),
    "densenet121": (128, "float16"),
    "googlenet": (256, "float16"),
    "vgg16": (128, "float16"),
    "resnet50": (256, "float16"),
    "resnet18": (256, "float16"),
    "swin_t": (128, "bfloat16"),
    "regnet_y_400mf": (128, "bfloat16"),
    "efficientnet_v2_s": (128, "bfloat16"),
    # timm's, which torchvision lacks.
    "convnext_v2_atto": (128, "bfloat16"),
    "mobilenet_v4_conv_small": (128, "bfloat16"),
    "vit_tiny_patch16_224": (128, "bfloat16"),
    "vit_small_patch14_dinov2": (128, "bfloat16"),
    "deit3_small_patch16_224": (128, "bfloat16"),
    "efficientnet_lite0": (256, "float16"),
    "resnet50d": (256, "float16"),
}
BAR = 1.0  # of the better of PyTorch's modes
LIMIT = 60  # seconds a network, with its compilation
SYNTHETIC = {"FLAGS_reader_queue_speed_test_mode": "1"}


def results_of(bench):
    """Results accumulate by card and version."""
    about = bench.describe()
    outcome = process.run([os.path.join(bench.bin, "fleet-worker"), "--version"], 20, bench.env)
    return accumulated.Results(os.path.join(bench.folder, "families"), f"{about['gpu'] or 'cpu'} {outcome.last_line()}")


def smoke_size(name):
    """Small, and a multiple of the network's patches."""
    return 56 if "patch14" in name else 64


def settings_of(bench, name, batch, dtype, steps, fetch):
    values = {"model.name": name, "data.batch_size": batch, "train.device": bench.device, "train.max_steps": steps,
              "train.fetch_every": fetch}
    if bench.smoke:
        size = smoke_size(name)
        values.update({"data.batch_size": 4, "data.image.height": size, "data.image.width": size, "train.max_steps": 4,
                       "train.fetch_every": 1})
        return values
    return {**values, **(switches.FLOAT16 if dtype == "float16" else switches.BFLOAT16)}


def ours(bench, name, batch, dtype):
    steps = 60 if batch >= 256 else 100
    values = settings_of(bench, name, batch, dtype, steps, 5)
    run = Job(bench, f"families_{name}", FILE, values, SYNTHETIC, LIMIT / 2, watch_memory=True)
    if not run.ok or run.device == "cpu":
        bench.note(f"{name} failed: {run.why() if not run.ok else 'it ran on the CPU'}")
        return None
    speeds = run.speeds(values["data.batch_size"], skip=1 if bench.smoke else 20)
    return {"images_per_s": statistics.median(speeds), "memory_mib": run.memory_mib} if speeds else None


def peers(bench, name, batch, dtype):
    script = job.file_of("tests", "bench", "peers", "vision_gpu.py")
    argv = [bench.python, "-B", script, name, "--limit", str(LIMIT - 15)]
    argv += ["--device", "cpu", "--batch", "4", "--size", str(smoke_size(name)), "--seconds", "0.1", "--dtype", "bfloat16", "--modes", "eager"] \
        if bench.smoke else ["--batch", str(batch), "--dtype", dtype]
    outcome = process.run(argv, LIMIT, sweep=True)
    bench.log(f"$ {' '.join(argv)}\n{outcome.output}")
    found = [json.loads(line[7:]) for line in outcome.output.splitlines() if line.startswith("RESULT ")]
    if not found:
        bench.note(f"{name}: PyTorch: {outcome.last_line()}")
    return found


def losses(bench, name, dtype):
    """The largest difference of five steps' losses between the CPU and the card, relative to the loss; None without both."""
    if bench.smoke:
        return None
    found = []
    for device in ("cpu", "cuda"):
        values = {**settings_of(bench, name, 8, dtype, 5, 1), "data.batch_size": 8, "train.device": device}
        if device == "cpu":
            values["strategy.amp"] = False
        run = Job(bench, f"families_{name}_{device}", FILE, values, SYNTHETIC, LIMIT)
        found.append(run.losses() if run.ok else {})
    steps = sorted(found[0].keys() & found[1].keys())
    return max(abs(found[1][s] - found[0][s]) / abs(found[0][s]) for s in steps) if len(steps) == 5 else None


def slowest_operations(bench, name, batch, dtype):
    """The top five lines of --profile."""
    values = settings_of(bench, name, batch, dtype, 10, 5)
    argv = [os.path.join(bench.bin, "fleet-worker"), FILE, "--profile"] + job.settings(
        {**values, "train.output": os.path.join(bench.folder, "jobs", "families_profile")})
    outcome = process.run(argv, bench.allow(LIMIT), {**bench.env, **SYNTHETIC})
    bench.log(f"$ {' '.join(argv)}\n{outcome.output}")
    return accumulated.slowest_operations(outcome.output)


def measure(bench, name, batch, dtype):
    mine = ours(bench, name, batch, dtype)
    if mine is None:
        return None
    found = peers(bench, name, batch, dtype)
    row = {"network": name, "batch": batch, "dtype": dtype, **mine, "peers": found, "ratio": None,
           "loss_difference": losses(bench, name, dtype)}
    if found:
        row["ratio"] = mine["images_per_s"] / max(peer["images_per_s"] for peer in found)
    if row["ratio"] is not None and row["ratio"] < BAR:
        row["slowest"] = slowest_operations(bench, name, batch, dtype)
    return row


def show(results):
    lines = []
    for row in results.by_ratio():
        best = max(row["peers"], key=lambda peer: peer["images_per_s"], default=None)
        ratio = f"{row['ratio']:.2f}" if row["ratio"] is not None else "-"
        difference = row["loss_difference"]
        lines.append([row["network"], row["batch"], row["dtype"], f"{row['images_per_s']:.0f}",
                      f"{best['images_per_s']:.0f} {best['mode']}" if best else "-", ratio, str(row["memory_mib"] or "-"),
                      f"{difference:.1e}" if difference is not None else "-"])
    print(report.table(["network", "batch", "type", "images/s", "PyTorch", "ratio", "MiB", "loss against the CPU's"], lines))
    results.print_slowest()


def families(bench):
    """One network of each family, or those named, beside PyTorch; results accumulate. --next: first those not measured yet."""
    results = results_of(bench)
    failed = 0
    for name in accumulated.wanted(bench.options.networks, FAMILIES, bench.options.next, results.rows):
        if bench.left() < (5 if bench.smoke else LIMIT):
            bench.note(f"{name}: no time left; continue with --next")
            break
        row = measure(bench, name, *FAMILIES[name])
        if row is None:
            failed += 1
            continue
        results.add(name, row)
        ratio = f"{row['ratio']:.2f}" if row["ratio"] is not None else "none"
        print(f"{name}: {row['images_per_s']:.0f} images/s, ratio {ratio}", flush=True)
    show(results)
    print(results.summary("families"))
    return 1 if failed else 0
