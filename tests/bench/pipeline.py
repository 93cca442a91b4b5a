#!/usr/bin/env python3
"""A pipeline of two stages on two pinned cores, against one rank on one core: the time of a step, what the stages wait, and memory.

    tests/bench/pipeline.py [--counts | --times]

The net is an mlp of two equal halves, in 16 micro-batches. The time that a stage computes is the kernel's (schedstat of its busiest
thread); the rest of a step it waits. Both in 1F1B and in Eager1F1B. Memory is VmHWM (peak_host_memory), against F-then-B, which
keeps all micro-batches.
FLEET_TORCH_PYTHON names an interpreter with torch.distributed.pipelining, the peer over Gloo. --counts: memory only; --times: without it.
"""
# Builds: fleetrun fleet-worker
import glob
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
PEER = os.path.join(ROOT, "tests/bench/peers/pipeline_torch.py")
STAGES, MICRO_BATCHES, SAMPLES, WIDTH, LAYERS, CLASSES = 2, 16, 64, 768, 16, 10
# The first layer has no gradient of its input: with this many inputs it takes as long as the others.
HEIGHT, SIDE = 32, 36
INPUTS = HEIGHT * SIDE
FORMULA = (STAGES - 1) / (MICRO_BATCHES + STAGES - 1)


def job_file(folder, name, mode, micro_batches, steps, width=WIDTH, samples=SAMPLES, layers=LAYERS, image=(HEIGHT, SIDE)):
    batch = micro_batches * samples
    job = {
        "model": {"name": "mlp", "num_classes": CLASSES, "hidden": [width] * layers},
        "data": {"source": "synthetic", "batch_size": batch, "image": {"channels": 1, "height": image[0], "width": image[1]},
                 "train": {"samples": batch * steps}, "threads": 1},
        "optimizer": {"name": "sgd"},
        "learning_rate": {"name": "constant", "base": 1e-3},
        "strategy": {"pipeline": True, "pipeline_configs": {"accumulate_steps": micro_batches, "schedule_mode": mode,
                                                            "cut": [f"fc{layers // 2}"]}},
        "train": {"epochs": 1, "fetch_every": 1, "evaluate_every": 0, "output": os.path.join(folder, name)},
        "checkpoint": {"at_end": False},
    }
    file = os.path.join(folder, name + ".json")
    with open(file, "w") as text:
        json.dump(job, text)
    return file


def busiest(pid):
    """Seconds that each thread of a process has run."""
    seconds = {}
    for file in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(file) as text:
                seconds[file] = int(text.read().split()[0]) / 1e9
        except OSError:
            pass  # it has ended
    return seconds


def events(folder, name):
    try:
        with open(os.path.join(folder, name, "metrics.jsonl")) as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]
    except FileNotFoundError:
        return []


def worker_pids(job):
    found = {}
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(folder + "/cmdline", "rb") as text:
                words = text.read().split(b"\0")
            with open(folder + "/environ", "rb") as text:
                rank = [word for word in text.read().split(b"\0") if word.startswith(b"PADDLE_TRAINER_ID=")]
        except OSError:
            continue
        if job.encode() in words and words[0].endswith(b"fleet-worker") and rank:
            found[int(rank[0].split(b"=")[1])] = int(os.path.basename(folder))
    return found


def run(folder, name, ranks, mode="1F1B", micro_batches=MICRO_BATCHES, steps=10, busy=False, **net):
    """The train lines, the summary, and what part of the time each rank computed."""
    job = job_file(folder, name, mode, micro_batches, steps, **net)
    pinned = os.path.join(folder, "pinned.sh")
    with open(pinned, "w") as text:
        text.write(f'#!/bin/sh\nexec taskset -c "$LOCAL_RANK" "{BIN}/fleet-worker" "$1"\n')
    os.chmod(pinned, 0o755)
    log = open(os.path.join(folder, name + ".out"), "w+")
    process = subprocess.Popen([os.path.join(BIN, "fleetrun"), f"--nproc_per_node={ranks}", f"--log_dir={folder}/{name}.log", pinned, job],
                               env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}, stdout=log, stderr=log)
    seen, first, last = 0, None, None
    while process.poll() is None:
        time.sleep(0.01)
        if not busy:
            continue
        lines = [event for event in events(folder, name) if event["event"] == "train"]
        if len(lines) == seen or len(lines) < 2:
            continue
        seen = len(lines)
        sample = (time.monotonic(), {rank: busiest(pid) for rank, pid in worker_pids(job).items()})
        if seen < steps and all(sample[1].values()):
            first, last = first or sample, sample
    if process.returncode != 0:
        log.seek(0)
        sys.exit(f"pipeline: {name} ended with {process.returncode}\n{log.read()}")
    all_events = events(folder, name)
    parts = []
    if busy:
        for rank in sorted(last[1]):
            ran = [last[1][rank][thread] - first[1][rank].get(thread, 0) for thread in last[1][rank]]
            parts.append(max(ran) / (last[0] - first[0]))
    return [event for event in all_events if event["event"] == "train"], all_events[-1], parts


def step_seconds(train):
    times = [event["time"] for event in train]
    return statistics.median(b - a for a, b in zip(times[1:], times[2:]))


def memory(folder, missed):
    net = {"width": 64, "layers": 64, "samples": 2048, "steps": 3, "image": (2, 2)}  # nearly all activations

    def peaks(mode, micro_batches):
        name = f"{mode}_{micro_batches}"
        return run(folder, name, STAGES, mode, micro_batches, **net)[1]["peak_host_memory"]

    # The rest of the process, such as batches that are prefetched, is the same in both.
    ours, whole = peaks("1F1B", MICRO_BATCHES)[0], peaks("F-then-B", MICRO_BATCHES)[0]
    one = net["layers"] // STAGES * net["width"] * net["samples"] * 4  # bytes of a micro-batch: a float for each feature of each layer
    kept = MICRO_BATCHES - (whole - ours) / one
    print(f"pipeline_memory: ratio {whole / ours:.2f} (1F1B {ours} bytes, F-then-B {whole} bytes)")
    print(f"pipeline_micro_batches_kept: {kept:.2f} of {MICRO_BATCHES} by stage 0 of {STAGES}")
    if kept > STAGES + 0.2:
        missed.append("memory")


def torch_seconds(stages):
    """The time of a step of torch.distributed.pipelining; None without it."""
    python = os.environ.get("FLEET_TORCH_PYTHON")
    if not python:
        return None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(stages):
        env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(stages), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
               "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        words = ["taskset", "-c", str(rank), python, PEER, *map(str, (MICRO_BATCHES, SAMPLES, WIDTH, LAYERS, INPUTS, CLASSES))]
        ranks.append(subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [rank.communicate() for rank in ranks]
    if any(rank.returncode for rank in ranks):
        print("SKIP pipeline_torch: " + (outputs[0][1] or outputs[-1][1]).strip().split("\n")[-1])
        return None
    return float(outputs[0][0].strip().split("\n")[-1])


def two_stages(folder, mode, alone, missed):
    """The time of a step in this schedule_mode."""
    train, _, busy = run(folder, mode, STAGES, mode, steps=14, busy=True)
    ours = step_seconds(train)
    print(f"pipeline_step_{mode}: ratio {alone / ours:.2f} (two stages {ours:.4f} s, one rank on one core {alone:.4f} s)")
    if alone / ours < 1.6:
        missed.append(f"step in {mode}")
    waited = 1 - statistics.mean(busy)
    print(f"pipeline_bubble_{mode}: ratio {waited / FORMULA:.2f} (measured {waited:.4f}, formula {FORMULA:.4f}; "
          f"stages compute {', '.join(f'{part:.4f}' for part in busy)} of the time)")
    if not 0.9 <= waited / FORMULA <= 1.1:
        missed.append(f"bubble in {mode}")
    return ours


def main():
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        if "--times" not in sys.argv:
            memory(folder, missed)
        if "--counts" not in sys.argv:
            if len(os.sched_getaffinity(0)) < STAGES:
                sys.exit("SKIP pipeline: it needs two cores")
            alone = step_seconds(run(folder, "alone", 1)[0])
            ours = min(two_stages(folder, mode, alone, missed) for mode in ("1F1B", "Eager1F1B"))
            theirs = torch_seconds(STAGES)
            if theirs is None:
                print("SKIP pipeline_torch: FLEET_TORCH_PYTHON names no torch.distributed.pipelining")
            else:
                print(f"pipeline_torch: ratio {theirs / ours:.2f} (ours {ours:.4f} s, torch {theirs:.4f} s)")
    if missed:
        sys.exit("pipeline: " + ", ".join(missed))


main()
