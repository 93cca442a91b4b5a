#!/usr/bin/env python3
"""Sharding on four ranks against whole parameters and states on each: memory, bytes, losses, and the time of a step.

    tests/bench/sharding.py [--counts | --peer]

Memory is the kernel's (peak_host_memory of metrics.jsonl: VmHWM), bytes are counted by the transport (sent_bytes), both over Gloo: of
shared memory each rank would hold the others' part too. Times are over shared memory. The net is an mlp of 38 million parameters: 458 MB
of parameters and Adam's states. Also the memory of a stage 3 that saves checkpoints, and of one that resumes from them. --counts: without
checkpoints, times and PyTorch. --peer: only against PyTorch: DistributedDataParallel with ZeroRedundancyOptimizer, FullyShardedDataParallel, over Gloo
(tests/bench/peers/sharding_torch.py). FLEET_TORCH_PYTHON, or else FLEET_PYTHON, names the interpreter that has it.
"""
# Builds: fleetrun fleet-worker
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
RANKS, WIDTH, LAYERS, CLASSES, SIDE, BATCH = 4, 1024, 37, 16, 8, 8
STEPS = 6 if "--counts" in sys.argv else 20  # times need more steps than bytes do
HIDDEN = (LAYERS - 1) * WIDTH * WIDTH + WIDTH * CLASSES  # weights that the backward pass reads
PARAMETERS = 4 * (SIDE * SIDE * WIDTH + HIDDEN + LAYERS * WIDTH + CLASSES)  # bytes
READ_BACK = 4 * HIDDEN


def run(folder, name, strategy, comm="gloo", **checkpoint):
    """The train lines and the summary of a job."""
    output = os.path.join(folder, name)
    job = {
        "model": {"name": "mlp", "num_classes": CLASSES, "hidden": [WIDTH] * LAYERS},
        "data": {"source": "synthetic", "batch_size": BATCH, "image": {"channels": 1, "height": SIDE, "width": SIDE},
                 "train": {"samples": RANKS * BATCH * STEPS}},
        "optimizer": {"name": "adam"},
        "learning_rate": {"name": "constant", "base": 1e-4},
        "strategy": {"fuse_grad_size_in_MB": 8, **strategy},
        "train": {"epochs": 1, "fetch_every": 1, "evaluate_every": 0, "output": output},
        "checkpoint": {"at_end": False, **checkpoint},
        "comm": {"backend": comm},
    }
    file = output + ".json"
    with open(file, "w") as text:
        json.dump(job, text)
    ended = subprocess.run([os.path.join(BIN, "fleetrun"), f"--nproc_per_node={RANKS}", f"--log_dir={output}.log", file],
                           env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"sharding: {name} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    with open(os.path.join(output, "metrics.jsonl")) as lines:
        events = [json.loads(line) for line in lines]
    return [event for event in events if event["event"] == "train"], events[-1]


def sharding(stage, **configs):
    return {"sharding": True, "sharding_configs": {"stage": stage, "segment_broadcast_MB": 8, **configs}}


def bytes_a_step(stage, degree):
    """Bytes that a rank sends, on average: ZeRO's formula, less what the backward pass does not read, more sums between groups."""
    others = (degree - 1) / degree
    gradients = PARAMETERS * others
    parameters = PARAMETERS * others if stage < 3 else (PARAMETERS + READ_BACK) * others
    copies = RANKS // degree
    between_groups = 2 * PARAMETERS / degree * (copies - 1) / copies
    return gradients + parameters + between_groups


def zero(stage):
    """ZeRO's formula."""
    return (3 if stage == 3 else 2) * PARAMETERS * (RANKS - 1) / RANKS


def step_seconds(train):
    times = [event["time"] for event in train]
    return statistics.median(b - a for a, b in zip(times, times[1:]))


def check_checkpoints(folder, plain_peak, missed):
    """While a checkpoint is written, a rank holds a copy of its own part. Loading goes through one variable at a time."""
    saved = run(folder, "saves", sharding(3), every_steps=STEPS // 2, at_end=True)[1]
    newest = os.path.join(folder, "saves", "checkpoints", f"step_{STEPS // 2:08d}")
    resumed = run(folder, "resumes", sharding(3), resume=newest)[1]
    own_part = 3 * PARAMETERS // RANKS  # parameters and Adam's states
    for what, summary, more in (("save", saved, own_part), ("resume", resumed, 0)):
        peak = max(summary["peak_host_memory"])
        print(f"sharding_stage3_{what}_memory: ratio {(plain_peak + more) / peak:.2f} (ours {peak} bytes, without checkpoints {plain_peak} bytes"
              + (f", a copy of a rank's part {more} bytes)" if more else ")"))
        if peak > 1.1 * (plain_peak + more):
            missed.append(f"{what}: {peak} bytes")


def peer(stage):
    """Memory and seconds of PyTorch's variant; None, after a line that says why, if it cannot run."""
    python = os.environ.get("FLEET_TORCH_PYTHON") or os.environ.get("FLEET_PYTHON") or "/usr/bin/python3"
    script = os.path.join(ROOT, "tests/bench/peers/sharding_torch.py")
    numbers = [RANKS, WIDTH, LAYERS, CLASSES, SIDE * SIDE, BATCH, STEPS]
    ended = subprocess.run([python, script, stage, *map(str, numbers)], env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
                           capture_output=True, text=True)
    last = (ended.stdout.splitlines() or [""])[-1].split()
    if ended.returncode != 0 or len(last) != 4 or last[0] != "peak":
        reason = ended.stdout if ended.stdout.startswith("SKIP") else ended.stderr
        print(f"sharding_{stage}_torch: SKIPPED: {(reason.strip().splitlines() or ['no output'])[-1]} (FLEET_TORCH_PYTHON)")
        return None
    return int(last[1]), float(last[3])


def compare_with_peer(folder, missed):
    for stage in (1, 2, 3):
        theirs = peer(f"stage{stage}")
        if not theirs:
            return
        train, ended = run(folder, f"stage{stage}_gloo", sharding(stage))
        peak, seconds = max(ended["peak_host_memory"]), step_seconds(train)
        print(f"sharding_stage{stage}_torch_memory: ratio {theirs[0] / peak:.2f} (ours {peak} bytes, PyTorch {theirs[0]} bytes)")
        print(f"sharding_stage{stage}_torch_step: ratio {theirs[1] / seconds:.2f} (ours {seconds:.4f} s, PyTorch {theirs[1]:.4f} s, both over Gloo)")
        if peak > theirs[0]:
            missed.append(f"stage{stage}: more memory than PyTorch")
        if seconds > theirs[1]:
            missed.append(f"stage{stage}: slower than PyTorch")


def compare_with_whole(folder, missed):
    whole, ended = run(folder, "whole", {})
    whole_peak = max(ended["peak_host_memory"])
    variants = [(1, RANKS, {}), (2, RANKS, {}), (3, RANKS, {}), (3, RANKS // 2, {"dp_degree": 2})]
    for stage, degree, configs in variants:
        name = f"stage{stage}" if degree == RANKS else f"stage{stage}_hybrid"
        train, ended = run(folder, name, sharding(stage, **configs))
        peak = max(ended["peak_host_memory"])
        print(f"sharding_{name}_memory: ratio {whole_peak / peak:.2f} (ours {peak} bytes, whole {whole_peak} bytes)")
        if name == "stage3" and "--counts" not in sys.argv:
            check_checkpoints(folder, peak, missed)
        if name == "stage3" and peak > 0.4 * whole_peak:
            missed.append(f"{name}: a rank's memory is {peak / whole_peak:.2f} of the whole")
        sent = statistics.mean(ended["sent_bytes"])
        expected = bytes_a_step(stage, degree)
        print(f"sharding_{name}_bytes: ratio {expected / sent:.3f} (ours {sent:.0f} bytes a step, algorithm {expected:.0f} bytes)")
        if degree == RANKS:
            print(f"sharding_{name}_zero: ratio {zero(stage) / sent:.3f} (ours {sent:.0f} bytes a step, ZeRO {zero(stage):.0f} bytes)")
        if not 0.97 <= expected / sent <= 1.03:
            missed.append(f"{name}: bytes")
        apart = max(abs(a["loss"] - b["loss"]) for a, b in zip(train, whole))
        print(f"sharding_{name}_losses: {apart:.1e} apart at most over {len(train)} steps")
        if len(train) != STEPS or not apart <= 1e-5:
            missed.append(f"{name}: losses")
    if "--counts" not in sys.argv:
        theirs = step_seconds(run(folder, "whole_shm", {}, "shm")[0])
        for stage in (1, 2, 3):
            ours = step_seconds(run(folder, f"stage{stage}_shm", sharding(stage), "shm")[0])
            print(f"sharding_stage{stage}_step: ratio {theirs / ours:.2f} (ours {ours:.4f} s, whole {theirs:.4f} s)")


def main():
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        if "--peer" not in sys.argv:
            compare_with_whole(folder, missed)
        if "--counts" not in sys.argv:
            compare_with_peer(folder, missed)
    if missed:
        sys.exit("sharding: " + ", ".join(missed))


main()
