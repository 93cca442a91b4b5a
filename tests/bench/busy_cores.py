#!/usr/bin/env python3
"""Jobs on cores that others use too: their time beside busy loops, and under a CPU quota, against their time alone.

    scripts/bench.sh busy_cores [NAME...] [--runs N] [--before]

A loop for each core that this process may use; a quota of three quarters of these cores (1.5 of 2) in a control group, which needs
root. Runs take turns (alone, loops, quota), the figures are medians. A fair share beside loops is 2, under the quota 1.33; asked for is
at most 3. --before: also against the waits that OpenMP chooses by itself, alone (asked for: at least 0.98 of their speed). NAME: only
these jobs.
"""
# Builds: fleetrun fleet-worker
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
MOST, LEAST_SPEED = 3.0, 0.98
CORES = len(os.sched_getaffinity(0))
BY_OPENMP = {"GOMP_SPINCOUNT": "300000"}  # what GCC's OpenMP does without a variable, if there are as many cores as threads

# name: (model, batch, image [channels, side], samples)
JOBS = {
    "lenet": ({"name": "lenet", "num_classes": 10}, 64, (1, 28), 8192),
    "resnet20": ({"name": "resnet20", "num_classes": 10}, 32, (3, 32), 640),
    "vit": ({"name": "vit_b_32", "num_classes": 10}, 2, (3, 64), 8),
}


def write_job(folder, name, ranks):
    model, batch, (channels, side), samples = JOBS[name]
    path = os.path.join(folder, f"{name}_{ranks}.json")
    with open(path, "w") as file:
        json.dump({"model": model,
                   "data": {"source": "synthetic", "batch_size": batch // ranks, "image": {"channels": channels, "height": side, "width": side},
                            "train": {"samples": samples}},
                   "train": {"epochs": 1, "fetch_every": 1000, "evaluate_every": 0, "output": os.path.join(folder, "output")},
                   "checkpoint": {"at_end": False}}, file)
    return path


@contextlib.contextmanager
def loops():
    processes = [subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-S", "-c", "while True: pass"])
                 for core in sorted(os.sched_getaffinity(0))]
    try:
        yield []
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def quota():
    """The words before a command that runs it in a control group with the quota."""
    share, group = 0.75 * CORES, None
    for mount, limits in (("/sys/fs/cgroup", {"cpu.max": f"{int(share * 100000)} 100000"}),
                          ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(int(share * 100000))})):
        path = f"{mount}/fleet_busy_cores_{os.getpid()}"
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            for name, value in limits.items():
                with open(f"{path}/{name}", "r+") as file:  # fails where the folder is no group
                    file.write(value)
            group = path
            break
        except OSError:
            os.rmdir(path)
    if not group:
        raise OSError("no control group with a CPU quota can be made here; start as root")
    try:
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "quota"]
    finally:
        os.rmdir(group)


def seconds(job, ranks, before=(), environment=()):
    command = [os.path.join(BIN, "fleet-worker"), job] if ranks == 1 else [
        os.path.join(BIN, "fleetrun"), f"--nproc_per_node={ranks}", "--log_dir=" + job + ".log", job]
    begun = time.monotonic()
    ended = subprocess.run([*before, *command], env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **dict(environment)}, capture_output=True,
                           text=True)
    if ended.returncode != 0:
        sys.exit(f"busy_cores: {' '.join(command)} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return time.monotonic() - begun


def measure(job, ranks, runs, compare):
    ways = {"alone": (contextlib.nullcontext([]), ()), "loops": (loops, ()), "quota": (quota, ())}
    if compare and ranks < CORES:
        ways["before"] = (contextlib.nullcontext([]), BY_OPENMP.items())
    times = {way: [] for way in ways}
    for _ in range(runs):
        for way, (surroundings, environment) in ways.items():
            if isinstance(times[way], OSError):
                continue
            try:
                with (surroundings() if callable(surroundings) else surroundings) as words:
                    times[way].append(seconds(job, ranks, words, environment))
            except OSError as error:
                times[way] = error
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--before", action="store_true")
    options = parser.parse_args()
    unknown = set(options.names) - set(JOBS)
    if unknown:
        sys.exit(f"busy_cores: unknown job {', '.join(sorted(unknown))}; use one of: {' '.join(JOBS)}")
    missed = 0
    folder = tempfile.mkdtemp(prefix="busy_cores.")
    try:
        lines = []
        for name in options.names or JOBS:
            for ranks in (1, 2):
                times = measure(write_job(folder, name, ranks), ranks, options.runs, options.before)
                alone = statistics.median(times["alone"])
                for way in list(times)[1:]:
                    title = f"busy_cores_{name}_{ranks}_{way}"
                    if isinstance(times[way], Exception):
                        lines.append(f"{title}: SKIPPED: {times[way]}")
                        continue
                    other = statistics.median(times[way])
                    ratio, good = other / alone, other / alone >= LEAST_SPEED if way == "before" else other / alone <= MOST
                    missed += not good
                    asked = f"at least {LEAST_SPEED}" if way == "before" else f"at most {MOST:.0f}"
                    lines.append(f"{title}: ratio {ratio:.2f} (ours {other:.2f} s, alone {alone:.2f} s; asked for {asked}: {'met' if good else 'MISSED'})")
                    print(lines[-1], [f"{t:.2f}" for t in times[way]], flush=True)
    finally:
        shutil.rmtree(folder)
    print(f"{CORES} cores, medians of {options.runs}")
    print("\n".join(lines))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
