#!/usr/bin/env python3
"""The AUC that config/deepfm_servers.json reaches in sync on synthetic clicks, against the best possible one of the test rows, which
follows from their true probabilities. Three seeds of the rows, their truth and the initial values; tables on servers.

    tests/bench/ps_auc.py [--servers N] [--trainers N] [--seeds 1,2,3] [--set KEY=VALUE]...

Exits with 1 if the difference is above 0.005 for any seed.
"""
# Builds: fleetrun fleet-worker
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
BOUND = 0.005


def train(seed, options, folder):
    """The AUC of the test rows, the best possible one, and their number."""
    output = os.path.join(folder, f"seed{seed}")
    settings = [f"data.seed={seed}", f"train.seed={seed}", f"train.output={output}", "train.tensorboard=false", "checkpoint.at_end=false",
                *options.set]
    command = [os.path.join(BIN, "fleetrun"), f"--server_num={options.servers}", f"--worker_num={options.trainers}",
               "--log_dir=" + output + ".log", os.path.join(ROOT, "config/deepfm_servers.json")]
    for setting in settings:
        command += ["--set", setting]
    ran = subprocess.run(command, env=dict(os.environ, OMP_NUM_THREADS="1"), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False)
    best = re.search(r"best possible AUC of the test rows is ([0-9.]+) ", ran.stdout)
    if ran.returncode != 0 or not best:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}")
    with open(os.path.join(output, "metrics.jsonl"), encoding="utf-8") as file:
        tests = [json.loads(line) for line in file if '"test"' in line]
    samples = re.search(r"test\] samples: ([0-9]+)", ran.stdout)
    return tests[-1]["auc"], float(best.group(1)), int(samples.group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], help="a key of the job")
    options = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in options.seeds.split(","):
            begun = time.monotonic()
            auc, best, samples = train(seed, options, folder)
            worst = max(worst, best - auc)
            print(f"ps_auc: seed {seed}: AUC {auc:.5f} of {samples} test rows, best possible {best:.4f}: {best - auc:.4f} below "
                  f"({time.monotonic() - begun:.0f} s)", flush=True)
    print(f"ps_auc: at most {worst:.4f} below the best possible AUC (bound {BOUND})")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
