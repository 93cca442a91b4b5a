#!/usr/bin/env python3
"""What the modes of parameter servers do to accuracy: wide_deep with its table on servers, trained on the same generated clicks in sync,
async and geo. The best AUC that a model can reach on the test rows is known.

    tests/bench/ps_modes.py [--seeds N] [--servers N] [--trainers N] [--samples N] [--test N] [--model NAME]

Runs each mode through fleetrun on this host with each seed and prints the AUC of the test rows. Exits with 1 if the mean over the seeds
of async or geo is more than 0.003 below that of sync. Rates follow docs/how-to/parameter_servers.md: those of sync / trainers in async
and geo.
"""
# Builds: fleetrun fleet-worker
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
BOUND = 0.003
BATCH = 512  # of all trainers
RATE, TABLE_RATE = 0.02, 0.05
MODES = {
    "sync": {},
    "async": {"a_sync": True, "a_sync_configs": {"max_staleness": 4}},
    "geo": {"a_sync_configs": {"k_steps": 10}},
}


def job(mode, seed, options, output):
    divisor = 1 if mode == "sync" else options.trainers
    rule = {"name": "dense_adagrad", "learning_rate": TABLE_RATE / divisor}
    table = {"rule": rule, "initializer": {"low": -0.01, "high": 0.01}}
    model = {"name": options.model, "dim": 8, "hidden": [32, 16]}
    return {
        "task": "click",
        "model": model,
        "data": {"source": "synthetic_clicks", "seed": seed, "slot_count": 8, "slot_ids": 500, "dense": 4, "ids": 0, "deviation": 1.5,
                 "batch_size": BATCH // options.trainers, "train": {"samples": options.samples}, "test": {"samples": options.test}},
        "optimizer": {"name": "adagrad"},
        "learning_rate": {"name": "constant", "base": RATE / divisor},
        "strategy": MODES[mode],
        "tables": {name: table for name in (["embedding", "first_order"] if options.model == "deepfm" else ["embedding"])},
        "train": {"epochs": 1, "seed": seed, "fetch_every": 100, "output": output, "tensorboard": False},
        "checkpoint": {"at_end": False},
    }


def trained(mode, seed, options, folder):
    """The AUC of the test rows, and the best possible one."""
    output = os.path.join(folder, f"{mode}{seed}")
    with open(output + ".json", "w", encoding="utf-8") as file:
        json.dump(job(mode, seed, options, output), file)
    command = [os.path.join(BIN, "fleetrun"), f"--server_num={options.servers}", f"--worker_num={options.trainers}",
               "--log_dir=" + output + ".log", output + ".json"]
    ran = subprocess.run(command, env=dict(os.environ, OMP_NUM_THREADS="1"), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}")
    best = re.search(r"best possible AUC of the test rows is ([0-9.]+)", ran.stdout)
    with open(os.path.join(output, "metrics.jsonl"), encoding="utf-8") as file:
        tests = [line for line in map(json.loads, file) if line["event"] == "test"]
    return tests[-1]["auc"], float(best.group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=600_000, help="training rows")
    parser.add_argument("--test", type=int, default=200_000, help="test rows")
    parser.add_argument("--model", choices=["wide_deep", "deepfm"], default="wide_deep")
    options = parser.parse_args()
    differences = {mode: [] for mode in MODES}
    behind = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, options.seeds + 1):
            aucs = {}
            for mode in MODES:
                aucs[mode], best = trained(mode, seed, options, folder)
                differences[mode].append(aucs[mode] - aucs["sync"])
            behind.append(best - aucs["sync"])
            print(f"seed {seed}: best possible {best:.4f}, " + ", ".join(f"{mode} {auc:.4f}" for mode, auc in aucs.items()), flush=True)
    print(f"ps_modes: sync {statistics.mean(behind):.4f} below the best possible AUC, mean of {options.seeds}")
    failed = False
    for mode in ("async", "geo"):
        mean = statistics.mean(differences[mode])
        failed |= mean < -BOUND
        print(f"ps_modes: {mode} {mean:+.4f} against sync, from {min(differences[mode]):+.4f} to {max(differences[mode]):+.4f} "
              f"(at least -{BOUND})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
