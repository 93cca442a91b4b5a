#!/usr/bin/env python3
"""What fine-tuning ends with: ours on one and on two ranks, against PyTorch with timm's networks, the same weights and recipe.

    scripts/bench.sh vision_accuracy [--data FOLDER] [--networks NET...] [--seeds 5] [--output FOLDER]

For each network: fleetrun trains it on photographs of five classes of CIFAR-10 and exports it (`fleetrun export --timm`). Both sides start
from that folder, with a new head, on 1,000 photographs of all ten classes, 100 each, which the first training has not seen, once per
seed. The verdict compares accuracies of 1,000 test photographs: the means of ours must lie between the least and the largest of PyTorch's.

FOLDER holds train/<class>/*.jpg and test/<class>/*.jpg, or is left out for cifar10_jpeg.tar.xz of FLEET_SHARED_DATA (../shared/data).
FLEET_TORCH_PYTHON names the interpreter that has torch and timm. Runs that have ended are kept in FOLDER of --output and not run again with
the same fleet-worker, recipe and photographs.
About 12 CPU-minutes. Ends with 77 where the photographs or the packages are missing, with 1 outside of the spread.
"""
# Builds: fleetrun fleet-worker
import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PEER = os.path.join(ROOT, "tests/bench/peers/vision_accuracy_torch.py")
NETWORKS = ["convnext_atto", "vit_tiny_patch16_224"]
FIRST_CLASSES, TUNED_PER_CLASS, TESTED_PER_CLASS = 5, 100, 100
# The recipe of both sides. The peer reads it from the file recipe.json.
RECIPE = {"epochs": 6, "batch": 50, "rate": 2e-3, "warmup_epochs": 1, "weight_decay": 0.05, "layer_decay": 0.8, "clip_norm": 1.0,
          "label_smoothing": 0.1, "stochastic_depth": 0.1, "padding": 4, "side": 32,
          "mean": [0.4914, 0.4822, 0.4465], "std": [0.2470, 0.2435, 0.2616]}
NO_DECAY = ["bias", "norm", "gamma", "pos_embed", "cls_token", "stem.1", "downsample.0"]


def skip(why):
    print(f"SKIP: vision_accuracy: {why}")
    sys.exit(77)


def photographs(options):
    """The folder with train and test."""
    if options.data:
        return os.path.abspath(options.data)
    archive = os.path.join(os.environ.get("FLEET_SHARED_DATA") or os.path.join(ROOT, "../shared/data"), "cifar10_jpeg.tar.xz")
    if not os.path.exists(archive):
        skip(f"{archive} is not here; --data names a folder with CIFAR-10's photographs")
    folder = os.path.join(options.output, "photographs")
    if not os.path.exists(folder):
        shutil.rmtree(folder + ".part", ignore_errors=True)
        with tarfile.open(archive) as file:
            file.extractall(folder + ".part", filter="data")
        os.rename(folder + ".part", folder)
    return folder


def files_of(root, split, name):
    folder = os.path.join(root, split, name)
    return [f"{split}/{name}/{file}" for file in sorted(os.listdir(folder))]


def write_lists(root, folder):
    """Lists of "path label": first.txt and its test, tuned.txt and tested.txt. Their photographs differ."""
    classes = sorted(os.listdir(os.path.join(root, "train")))
    lists = {"first": [], "first_test": [], "tuned": [], "tested": []}
    for label, name in enumerate(classes):
        train, test = files_of(root, "train", name), files_of(root, "test", name)
        lists["tuned"] += [(path, label) for path in train[:TUNED_PER_CLASS]]
        lists["tested"] += [(path, label) for path in test[:TESTED_PER_CLASS]]
        if label % 2 == 0 and label // 2 < FIRST_CLASSES:
            lists["first"] += [(path, label // 2) for path in train[TUNED_PER_CLASS:]]
            lists["first_test"] += [(path, label // 2) for path in test[:TESTED_PER_CLASS]]
    paths = {}
    for name, rows in lists.items():
        paths[name] = os.path.join(folder, name + ".txt")
        with open(paths[name], "w") as file:
            file.writelines(f"{path} {label}\n" for path, label in rows)
    return paths, len(classes)


def job_of(network, classes, train, test, options, recipe):
    return {
        "model": {"name": network, "num_classes": classes, "stochastic_depth": recipe["stochastic_depth"]},
        "data": {"source": "image_list", "root": options.root, "train": {"list": train}, "test": {"list": test},
                 "image": {"channels": 3, "height": recipe["side"], "width": recipe["side"]}, "mean": recipe["mean"],
                 "std": recipe["std"], "cache": "decoded", "augment": {"random_crop_padding": recipe["padding"], "flip": True}},
        "optimizer": {"name": "adamw", "weight_decay": recipe["weight_decay"], "clip": "global_norm", "clip_norm": recipe["clip_norm"],
                      "layer_decay": recipe["layer_decay"]},
        "learning_rate": {"name": "cosine", "base": recipe["rate"], "warmup_epochs": recipe["warmup_epochs"]},
        "train": {"device": "cpu", "epochs": recipe["epochs"], "label_smoothing": recipe["label_smoothing"],
                  "evaluate_every": recipe["epochs"]},
    }


def lines_of(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def execute(argv, log):
    with open(log, "w") as file:
        ended = subprocess.run(argv, stdout=file, stderr=file)
    if ended.returncode != 0:
        with open(log) as file:
            sys.exit(f"vision_accuracy: {' '.join(argv)} ended with {ended.returncode}; {log}:\n{file.read()[-2000:]}")


def train(folder, job, ranks, seed):
    """The last evaluation's (acc1, loss) of this job, which is run if that has not been done before."""
    metrics = os.path.join(folder, "run", "metrics.jsonl")
    if not any(line["event"] == "summary" for line in lines_of(metrics)):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        job["data"]["batch_size"] = job["data"].pop("global") // ranks
        job["train"].update(seed=seed, output=os.path.join(folder, "run"))
        path = os.path.join(folder, "job.json")
        with open(path, "w") as file:
            json.dump(job, file, indent=1)
        execute([os.path.join(BIN, "fleetrun"), f"--nproc_per_node={ranks}", path], os.path.join(folder, "log"))
    test = [line for line in lines_of(metrics) if line["event"] == "test"][-1]
    return test["acc1"], test["loss"]


def first_weights(network, options, lists):
    """A folder of timm with weights from the other photographs."""
    folder, exported = os.path.join(options.output, network, "first"), os.path.join(options.output, network, "weights")
    recipe = {**RECIPE, "epochs": options.first_epochs, "batch": 100, "rate": 1e-3, "layer_decay": 1.0, "stochastic_depth": 0}
    job = job_of(network, FIRST_CLASSES, lists["first"], lists["first_test"], options, recipe)
    job["data"]["global"] = recipe["batch"]
    job["optimizer"]["exclude_from_weight_decay"] = no_decay(network)
    accuracy, _ = train(folder, job, 1, 1)
    if not os.path.exists(os.path.join(exported, "model.safetensors")):
        execute([os.path.join(BIN, "fleetrun"), "export", os.path.join(folder, "job.json"), "--timm", exported],
                os.path.join(options.output, network, "export_log"))
    return exported, accuracy


def no_decay(network):
    return [name for name in NO_DECAY if name.startswith(("stem", "downsample", "gamma")) == network.startswith("convnext") or
            name in ("bias", "norm")]


def tune(network, weights, ranks, seed, options, lists):
    job = job_of(network, options.classes, lists["tuned"], lists["tested"], options, RECIPE)
    job["data"]["global"] = RECIPE["batch"]
    job["optimizer"]["exclude_from_weight_decay"] = no_decay(network)
    job["checkpoint"] = {"weights": weights, "at_end": False}
    return train(os.path.join(options.output, network, f"ranks{ranks}-{seed}"), job, ranks, seed)


def peers(network, weights, seeds, options, lists):
    """PyTorch's (acc1, loss) by seed, and a line about its versions."""
    path = os.path.join(options.output, network, "torch.jsonl")
    known = {row["seed"]: row for row in lines_of(path)}
    missing = [str(seed) for seed in seeds if seed not in known]
    if missing:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        recipe = os.path.join(options.output, "recipe.json")
        with open(recipe, "w") as file:
            json.dump({**RECIPE, "root": options.root, "train": lists["tuned"], "test": lists["tested"], "classes": options.classes}, file)
        ended = subprocess.run([PYTHON, "-B", PEER, network, weights, recipe, *missing], stdout=subprocess.PIPE, text=True)
        if ended.returncode == 77:
            skip(ended.stdout.strip().removeprefix("SKIP: "))
        if ended.returncode != 0:
            sys.exit(f"vision_accuracy: {PEER} ended with {ended.returncode}")
        with open(path, "a") as file:
            file.write(ended.stdout)
        known = {row["seed"]: row for row in lines_of(path)}
    return [(known[seed]["acc1"], known[seed]["loss"]) for seed in seeds], known[seeds[-1]]["about"]


def describe(who, results):
    accuracies = [accuracy for accuracy, _ in results]
    text = " ".join(f"{accuracy:.3f}" for accuracy in accuracies)
    spread = f" ± {statistics.stdev(accuracies):.4f}" if len(accuracies) > 1 else ""
    print(f"  {who}: acc1 {text}, mean {statistics.mean(accuracies):.4f}{spread}, loss {statistics.mean(l for _, l in results):.4f}",
          flush=True)
    return statistics.mean(accuracies)


def compare(network, options, lists):
    begun = time.monotonic()
    weights, accuracy = first_weights(network, options, lists)
    print(f"{network}: acc1 {accuracy:.3f} of {FIRST_CLASSES} classes after the first training", flush=True)
    seeds = range(1, options.seeds + 1)
    theirs, about = peers(network, weights, list(seeds), options, lists)
    describe(about, theirs)
    least, most = min(accuracy for accuracy, _ in theirs), max(accuracy for accuracy, _ in theirs)
    within = True
    for ranks in (1, 2):
        mean = describe(f"ours, {ranks} rank{'s' if ranks > 1 else ''}", [tune(network, weights, ranks, seed, options, lists) for seed in seeds])
        inside = least <= mean <= most
        within = within and inside
        print(f"{network}, {ranks} rank{'s' if ranks > 1 else ''}: mean {mean:.4f} is {'within' if inside else 'OUTSIDE'} "
              f"{least:.3f} to {most:.3f}", flush=True)
    print(f"  {time.monotonic() - begun:.0f} s", flush=True)
    return within


parser = argparse.ArgumentParser(prog="vision_accuracy")
parser.add_argument("--data")
parser.add_argument("--networks", nargs="+", default=NETWORKS, choices=NETWORKS)
parser.add_argument("--seeds", type=int, default=5)
parser.add_argument("--first_epochs", type=int, default=2, help="passes over the photographs of the first training")
parser.add_argument("--output", default="output/vision_accuracy")
options = parser.parse_args()
options.output = os.path.abspath(options.output)
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
PYTHON = os.environ.get("FLEET_TORCH_PYTHON") or os.environ.get("FLEET_PYTHON") or "/usr/bin/python3"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # ranks and PyTorch alike: the same sums
probe = subprocess.run([PYTHON, "-B", PEER, "check"], stdout=subprocess.PIPE, text=True)
if probe.returncode != 0:
    skip(probe.stdout.strip().removeprefix("SKIP: ") or f"{PYTHON} fails")
os.makedirs(options.output, exist_ok=True)
options.root = photographs(options)
lists, options.classes = write_lists(options.root, options.output)
with open(os.path.join(BIN, "fleet-worker"), "rb") as program:
    kept = hashlib.sha256(program.read() + json.dumps([RECIPE, options.first_epochs, options.root, probe.stdout]).encode())
options.output = os.path.join(options.output, kept.hexdigest()[:12])
ours = subprocess.run([os.path.join(BIN, "fleet-worker"), "--version"], stdout=subprocess.PIPE, text=True).stdout.split("\n")[0]
print(f"{ours}; {probe.stdout.strip()}; {options.classes * TUNED_PER_CLASS} photographs, tested on "
      f"{options.classes * TESTED_PER_CLASS} others; {options.seeds} seeds", flush=True)
results = [compare(network, options, lists) for network in options.networks]
print(f"vision_accuracy: {sum(results)} of {len(results)} networks within PyTorch's spread")
sys.exit(0 if all(results) else 1)
