#!/usr/bin/env python3
"""What each strategy does to accuracy: ResNet-20 on CIFAR-10, two ranks, several seeds, against the plain run.

    tests/bench/strategies_accuracy.py --data DIR [--seeds 4] [--first_seed 1] [--epochs 3] [--only NAME]... [--output FOLDER]

DIR holds train/<class>/*.jpg and test/<class>/*.jpg. Every run has a folder of its own below FOLDER and is not run a second time, so
the script goes on where it was stopped. It prints a table in Markdown (mean and standard error) and draws the training losses into
FOLDER/strategies_loss.svg.
"""
# Builds: fleetrun fleet-worker
import argparse
import copy
import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLEETRUN = os.environ.get("FLEETRUN") or os.path.join(ROOT, "build/release/bin/fleetrun")
STEPS_AN_EPOCH = 390  # 50,000 images by 128
ADAM = {"optimizer": {"name": "adam"}, "learning_rate": {"name": "cosine", "base": 0.01}}

# What is changed in config/cifar10_resnet20.json. The global batch stays 128.
STRATEGIES = {
    "plain": {},
    "amp": {"strategy": {"amp": True}},
    "recompute": {"strategy": {"recompute": True, "recompute_configs": {"checkpoints": ["every block"]}}},
    "sync_batch_norm": {"strategy": {"sync_batch_norm": True}},
    "gradient_merge": {
        "strategy": {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 4}},
        "data": {"batch_size": 16},
    },
    "fp16_allreduce": {"strategy": {"fp16_allreduce": True}},
    "localsgd": {"strategy": {"localsgd": True, "localsgd_configs": {"k_steps": 4, "begin_step": 1}}},
    "adaptive_localsgd": {
        "strategy": {"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": 4, "begin_step": 1}}
    },
    "dgc": {
        "strategy": {
            "dgc": True,
            "dgc_configs": {
                "rampup_begin_step": STEPS_AN_EPOCH,
                "rampup_step": STEPS_AN_EPOCH,
                "sparsity": [0.75, 0.9375, 0.984375, 0.99609375, 0.999],
            },
        }
    },
    "lars": {
        "strategy": {
            "lars": True,
            "lars_configs": {"lars_coeff": 0.02, "lars_weight_decay": 1e-4, "exclude_from_weight_decay": ["bn", "bias"]},
        },
        "optimizer": {"weight_decay": 0},
        "learning_rate": {"base": 0.5},
    },
    "adam": ADAM,
    "lamb": {
        **ADAM,
        "strategy": {"lamb": True, "lamb_configs": {"lamb_weight_decay": 1e-4, "exclude_from_weight_decay": ["bias"]}},
    },
}
SECTIONS_REPLACED = {"adam": ["optimizer"], "lamb": ["optimizer"]}  # not merged: another optimizer's keys


def job_of(name, seed, options, folder):
    with open(os.path.join(ROOT, "config/cifar10_resnet20.json")) as file:
        job = json.loads(re.sub(r"(?m)^\s*//.*$", "", file.read()))
    for section, values in copy.deepcopy(STRATEGIES[name]).items():
        old = {} if section in SECTIONS_REPLACED.get(name, []) else job.get(section, {})
        job[section] = {**old, **values}
    job["data"]["root"] = options.data
    job["train"].update(epochs=options.epochs, seed=seed, evaluate_every=1, fetch_every=30, output=folder)
    job["checkpoint"] = {"at_end": False}
    return job


def run(name, seed, options):
    """The lines of the run's metrics.jsonl."""
    folder = os.path.join(options.output, f"{name}-{seed}")
    metrics = os.path.join(folder, "metrics.jsonl")
    lines = read(metrics)
    if not lines or lines[-1]["event"] != "summary" or lines[-1]["stopped"]:
        subprocess.run(["rm", "-rf", folder], check=True)
        os.makedirs(folder)
        job = os.path.join(folder, "job.json")
        with open(job, "w") as file:
            json.dump(job_of(name, seed, options, folder), file, indent=1)
        with open(os.path.join(folder, "log"), "w") as log:
            ended = subprocess.run([FLEETRUN, "--nproc_per_node=2", job], stdout=log, stderr=log)
        if ended.returncode != 0:
            sys.exit(f"strategies_accuracy: {name} ended with {ended.returncode}; see {folder}/log")
        lines = read(metrics)
    return lines


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def mean_and_error(values):
    if len(values) < 2:
        return f"{values[0]:.4f}"
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values) / len(values) ** 0.5:.4f}"


def draw(curves, path):
    """Mean training losses by epoch, as an SVG of its own: no library needed."""
    width, height, left, top = 860, 420, 60, 20
    colors = ["#000000", "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22",
              "#17becf", "#5254a3"]
    plot = width - left - 190
    most_x = max(x for points in curves.values() for x, _ in points)
    most_y = max(y for points in curves.values() for _, y in points)
    least_y = min(y for points in curves.values() for _, y in points)
    at = lambda x, y: (left + plot * x / most_x, top + (height - 60) * (most_y - y) / (most_y - least_y))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for i in range(6):
        y = least_y + (most_y - least_y) * i / 5
        out.append(f'<text x="{left - 8}" y="{at(0, y)[1] + 4:.0f}" text-anchor="end">{y:.2f}</text>')
        out.append(f'<line x1="{left}" x2="{left + plot}" y1="{at(0, y)[1]:.1f}" y2="{at(0, y)[1]:.1f}" stroke="#ddd"/>')
    for epoch in range(0, int(most_x) + 1, 1 + int(most_x) // 12):
        out.append(f'<text x="{at(epoch, 0)[0]:.0f}" y="{height - 22}" text-anchor="middle">{epoch}</text>')
    out.append(f'<text x="{left + plot / 2:.0f}" y="{height - 6}" text-anchor="middle">epoch</text>')
    out.append(f'<text x="14" y="{height / 2:.0f}" transform="rotate(-90 14 {height / 2:.0f})" text-anchor="middle">training loss</text>')
    for number, (name, points) in enumerate(curves.items()):
        color = colors[number % len(colors)]
        line = " ".join("%.1f,%.1f" % at(x, y) for x, y in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        y = top + 16 * number
        out.append(f'<line x1="{left + plot + 14}" x2="{left + plot + 34}" y1="{y}" y2="{y}" stroke="{color}" stroke-width="3"/>')
        out.append(f'<text x="{left + plot + 40}" y="{y + 4}">{name}</text>')
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n</svg>\n")


def mean_curve(runs, parts=13):
    """Of several seeds: (epoch, mean loss of the steps fetched in a part of the run), for each of its parts."""
    fetched = [line for lines in runs for line in lines if line["event"] == "train"]
    if not fetched:
        return []
    last, epochs = max(line["step"] for line in fetched), max(line["epoch"] for line in fetched) + 1
    by_part = {}
    for line in fetched:
        by_part.setdefault(min(parts - 1, parts * line["step"] // (last + 1)), []).append(line)
    mean = lambda lines, key: statistics.mean(line[key] for line in lines)
    return [(epochs * mean(lines, "step") / last, mean(lines, "loss")) for _, lines in sorted(by_part.items())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first_seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(STRATEGIES))
    parser.add_argument("--output", default=os.path.join(ROOT, "output/strategies_accuracy"))
    options = parser.parse_args()
    options.data, options.output = os.path.abspath(options.data), os.path.abspath(options.output)
    names = options.only or list(STRATEGIES)
    runs = {name: [] for name in names}
    for seed in range(options.first_seed, options.first_seed + options.seeds):  # every strategy of a seed, then the next one: a part is of use too
        for name in names:
            runs[name].append(run(name, seed, options))
            print(f"{name} seed {seed}: acc1 {runs[name][-1][-1]['acc1']:.4f}", file=sys.stderr, flush=True)
    print("| strategy | acc1 of the test images | loss of the test images | seeds |\n|---|---|---|---|")
    for name in names:
        tests = [[line for line in lines if line["event"] == "test"][-1] for lines in runs[name]]
        acc = mean_and_error([test["acc1"] for test in tests])
        loss = mean_and_error([test["loss"] for test in tests])
        print(f"| {name} | {acc} | {loss} | {len(tests)} |")
    curves = {name: mean_curve(lines) for name, lines in runs.items()}
    curves = {name: points for name, points in curves.items() if len(points) > 1}
    if curves:
        draw(curves, os.path.join(options.output, "strategies_loss.svg"))


main()
