#!/usr/bin/env python3
"""From SIGTERM to fleetrun until each of its ranks has it, against a kill of such processes themselves.

    tests/bench/signal_latency.py [ROUNDS]     default 15

Each round starts 8 ranks with fleetrun, and 8 of the same processes directly. A rank waits for the signal and notes the
time (CLOCK_MONOTONIC) at which it has it. Ends with 1 where the worst is over the 100 ms that are asked for.
"""
# Builds: fleetrun
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

RANKS = 8
ASKED_MS = 100.0
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLEETRUN = os.environ.get("FLEETRUN") or os.path.join(ROOT, "build/release/bin/fleetrun")
# Two files: `ready.RANK` when the signal can come, `got.RANK` with the time at which it came.
RANK = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
place = os.environ["PLACE"] + "/%s." + os.environ["RANK"]
open(place % "ready", "w").close()
signal.sigwaitinfo([signal.SIGTERM])
now = time.monotonic_ns()
with open(place % "part", "w") as file:
    file.write(str(now))
os.rename(place % "part", place % "got")
"""


def wait_for(files, seconds=60):
    """Outside of what is measured."""
    deadline = time.monotonic() + seconds
    while not all(os.path.exists(file) for file in files):
        if time.monotonic() > deadline:
            sys.exit("signal_latency: missing " + ", ".join(f for f in files if not os.path.exists(f)))
        time.sleep(0.005)


def latencies(place, tell):
    """Milliseconds for each rank from the moment before tell()."""
    wait_for([f"{place}/ready.{rank}" for rank in range(RANKS)])
    start = time.monotonic_ns()
    tell()
    got = [f"{place}/got.{rank}" for rank in range(RANKS)]
    wait_for(got)
    return [(int(open(file).read()) - start) / 1e6 for file in got]


def through_fleetrun(place):
    with open(place + "/out", "w") as out:
        job = subprocess.Popen(
            [FLEETRUN, f"--nproc_per_node={RANKS}", "--grace=60", sys.executable, "-S", "-c", RANK], cwd=place,
            stdout=out, stderr=out, env=dict(os.environ, PLACE=place, CUDA_VISIBLE_DEVICES=""))
    try:
        return latencies(place, lambda: job.send_signal(signal.SIGTERM))
    finally:
        job.wait()


def directly(place):
    ranks = [subprocess.Popen([sys.executable, "-S", "-c", RANK], env=dict(os.environ, PLACE=place, RANK=str(rank)))
             for rank in range(RANKS)]
    try:
        return latencies(place, lambda: [rank.send_signal(signal.SIGTERM) for rank in ranks])
    finally:
        for rank in ranks:
            rank.wait()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    ways = {"fleetrun": through_fleetrun, "direct kill": directly}
    all_ms = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            with tempfile.TemporaryDirectory() as place:
                all_ms[name] += way(place)
    median, worst = {}, {}
    for name, values in all_ms.items():
        median[name], worst[name] = statistics.median(values), max(values)
        print(f"{name}: median {median[name]:.2f} ms, worst {worst[name]:.2f} ms of {rounds} x {RANKS} ranks")
    met = worst["fleetrun"] <= ASKED_MS
    print(f"signal_latency: ratio {median['fleetrun'] / median['direct kill']:.2f} of the medians, "
          f"{worst['fleetrun'] / worst['direct kill']:.2f} of the worst; worst {worst['fleetrun']:.2f} ms "
          f"(asked for <= {ASKED_MS:.0f} ms: {'met' if met else 'MISSED'})")
    sys.exit(0 if met else 1)


main()
