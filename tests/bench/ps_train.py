#!/usr/bin/env python3
"""A step with parameter servers against a step of collective training: resnet20 on 32x32 images, batch 32, and wide_deep in PaddleRec's
sizes, batch 512, whose table is on the servers there, and has sparse rows here.

    tests/bench/ps_train.py [--model NAME]... [--servers N] [--trainers N] [--steps N] [--pairs N] [--apart [--sleep N]]

Runs both through fleetrun on this host in turn and prints the ratio of their times of a step, from metrics.jsonl, and of their CPU
seconds: the medians of the pairs. Exits with 1 if that of the times is above 1.5.

--apart compares async with sync while the last trainer sleeps twice the time of its own step in each step: the samples a second of all
trainers. Exits with 1 if async has less than 2 times those of sync. A step is mostly a sleep of --sleep ms, so that two cores suffice.
"""
# Builds: fleetrun fleet-worker bench_slow_trainer
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
BOUND = 1.5
BOUND_APART = 2.0


def train_section(options, output):
    return {"epochs": 1, "fetch_every": options.steps // 4, "evaluate_every": 0, "output": output, "tensorboard": False}


def job(options, output):
    return {
        "model": {"name": "resnet20", "num_classes": 10},
        "data": {"source": "synthetic", "batch_size": 32, "image": {"channels": 3, "height": 32, "width": 32},
                 "train": {"samples": 32 * options.trainers * options.steps}},
        "optimizer": {"name": "momentum", "momentum": 0.9},
        "learning_rate": {"name": "constant", "base": 0.01},
        "train": train_section(options, output),
        "checkpoint": {"at_end": False},
    }


def click_job(options, output):
    return {
        "task": "click",
        "model": {"name": "wide_deep"},
        "data": {"source": "synthetic_clicks", "slot_count": 26, "slot_ids": 30000, "dense": 13, "batch_size": 512,
                 "train": {"samples": 512 * options.trainers * options.steps}, "test": {"samples": 1}},
        "optimizer": {"name": "adagrad"},
        "learning_rate": {"name": "constant", "base": 0.01},
        "train": train_section(options, output),
        "checkpoint": {"at_end": False},
    }


JOBS = {"resnet20": job, "wide_deep": click_job}
TABLES = {"resnet20": {}, "wide_deep": {"embedding": {"rule": {"name": "dense_adagrad", "learning_rate": 0.01},
                                                      "initializer": {"low": -0.01, "high": 0.01}}}}


def measure(name, model, processes, tables, options, folder):
    """The seconds of a step, without the first quarter of them, and the CPU seconds of the whole run."""
    output = os.path.join(folder, name)
    path = output + ".json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**JOBS[model](options, output), **({"tables": tables} if tables else {})}, file)
    before = os.times()
    threads = dict(os.environ, OMP_NUM_THREADS="1")
    command = [os.path.join(BIN, "fleetrun"), *processes, "--log_dir=" + output + ".log", path]
    ran = subprocess.run(command, env=threads, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}")
    with open(os.path.join(output, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    steps = [line for line in lines if line["event"] == "train"]
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return (steps[-1]["time"] - steps[0]["time"]) / (steps[-1]["step"] - steps[0]["step"]), processor


def samples_a_second(name, mode, options, folder):
    """Of all trainers, whose steps are mostly a sleep (tests/bench/slow_trainer_bench.cc)."""
    logs = os.path.join(folder, name + ".log")
    command = [os.path.join(BIN, "fleetrun"), f"--server_num={options.servers}", f"--worker_num={options.trainers}", "--log_dir=" + logs,
               os.path.join(BIN, "bench_slow_trainer"), mode, str(options.steps), str(options.sleep)]
    ran = subprocess.run(command, env=dict(os.environ, OMP_NUM_THREADS="1"), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}")
    total = 0
    for rank in range(options.trainers):
        with open(os.path.join(logs, f"workerlog.{rank}"), encoding="utf-8") as file:
            samples, seconds = re.search(r"slow_trainer: rank \d+ samples (\d+) seconds ([0-9.]+)", file.read()).groups()
        total += float(samples) / float(seconds)
    return total


def compare_apart(options):
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(options.pairs):
            sync = samples_a_second(f"sync{pair}", "sync", options, folder)
            apart = samples_a_second(f"async{pair}", "async", options, folder)
            ratios.append(apart / sync)
            print(f"one slow trainer of {options.trainers}: {apart:.0f} samples/s in async, {sync:.0f} in sync: {ratios[-1]:.2f} times")
    ratio = statistics.median(ratios)
    print(f"ps_train --apart: {ratio:.2f} times the samples of sync (at least {BOUND_APART})")
    return 0 if ratio >= BOUND_APART else 1


def compare(model, options):
    times, costs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(options.pairs):
            collective, own = measure(f"collective{pair}", model, [f"--nproc_per_node={options.trainers}"], {}, options, folder)
            served, cost = measure(f"served{pair}", model, [f"--server_num={options.servers}", f"--worker_num={options.trainers}"],
                                   TABLES[model], options, folder)
            times.append(served / collective)
            costs.append(cost / own)
            print(f"{model}: a step of {1000 * served:.1f} ms with {options.servers} servers, {1000 * collective:.1f} ms collective: "
                  f"{times[-1]:.2f} times; {cost:.1f} CPU seconds, {own:.1f} collective: {costs[-1]:.2f} times", flush=True)
    ratio = statistics.median(times)
    print(f"ps_train: {model}: {ratio:.2f} times the time of collective training (at most {BOUND}), "
          f"{statistics.median(costs):.2f} times the CPU seconds")
    return 0 if ratio <= BOUND else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--model", action="append", choices=sorted(JOBS))
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--sleep", type=int, default=150, help="milliseconds of a step of --apart")
    options = parser.parse_args()
    if options.apart:
        return compare_apart(options)
    return max(compare(model, options) for model in options.model or sorted(JOBS))


if __name__ == "__main__":
    sys.exit(main())
