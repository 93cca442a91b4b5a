#!/usr/bin/env python3
"""Short jobs of two ranks on a machine that refuses a call: each succeeds, or ends with a line, and nothing of it is left.

    tests/refusals/walk.py REFUSE_LIBRARY [--all] [--programs=fleetrun,fleet-worker] [--kinds=thread,...] [--limit=S] [--keep]

The calls of a kind are counted in a run without refusals. Then the N-th one fails, once; and the N-th and all later ones. A sample of
the Ns, or with --all each of them. --limit: a run that takes longer hangs (default 60 s, a bound for busy machines; 10 s on a quiet
one). FLEET_BIN: the folder of the programs.
"""
# Builds: fleetrun fleet-worker refuse
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
KINDS = ["thread", "process", "file", "socket", "memory", "write"]
# A kernel that lacks these runs the same job.
LACKING = [("fleet-worker", "pidfd"), ("fleetrun", "close_range")]
# How many of the Ns a sample has, for a refusal that happens once and for one that stays.
SAMPLE = {"fleetrun": (6, 4), "fleet-worker": (2, 1)}
JOB = {
    "model": {"name": "mlp", "num_classes": 10, "hidden": [16]},
    "data": {"source": "synthetic", "batch_size": 8, "threads": 2, "image": {"channels": 1, "height": 8, "width": 8},
             "train": {"samples": 64}, "test": {"samples": 16}},
    "optimizer": {"name": "sgd"}, "learning_rate": {"name": "constant", "base": 0.01},
    "train": {"epochs": 1, "fetch_every": 1},
}
COMMANDS = {
    "fleetrun": ["--nproc_per_node=2", "sh", "-c", "echo a rank; sleep 0.03"],
    "fleet-worker": ["--nproc_per_node=2", "job.json"],
}
# What a program says before it ends: its log, or the line of main().
# Abseil writes "RAW: mmap error" itself, the C++ library "what(): " of an exception.
LINE = re.compile(r"^ERROR |^(fleetrun|fleet-worker): |RAW: |what\(\): ", re.MULTILINE)
# The limit that the line names.
LIMIT = {"thread": "pids.max", "process": "pids.max"}
LEFT_OVER = re.compile(r"\.(sock|new|tmp|part)$|\.part\.")
ENDING_S = 15  # the guardian may end after its launcher


class Walk:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="fleet_refusals_")
        self.failed = self.runs = 0
        self.slowest = (0, "")

    def run(self, program, kind, number):
        """Returns the exit code (None: it hung), the output, the calls that were made, and what is left."""
        folder = os.path.join(self.folder, "run")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with open(os.path.join(folder, "job.json"), "w") as file:
            json.dump(JOB, file)
        count = os.path.join(folder, "count")
        with open(count, "wb") as file:
            file.write(bytes(16))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PADDLE_", "FLAGS_", "FLEET_"))}
        environment.update(LD_PRELOAD=self.options.library, FLEET_REFUSE=f"{program}:{kind}:{number}", FLEET_REFUSE_COUNT=count,
                           FLEET_RUNTIME_DIR=os.path.join(folder, "runtime"), CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="2")
        begun = time.monotonic()
        with open(os.path.join(folder, "printed"), "wb") as output:
            job = subprocess.Popen([os.path.join(BIN, "fleetrun"), *COMMANDS[program]], cwd=folder, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            try:
                code = job.wait(self.options.limit)
            except subprocess.TimeoutExpired:
                code = None
        self.slowest = max(self.slowest, (time.monotonic() - begun, f"{program}:{kind}:{number}"))
        left = self.left(folder, count)
        for pid in left["processes"]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        job.wait()
        text = ""
        for where, _, names in os.walk(folder):
            for name in names:
                if name == "printed" or name.startswith("workerlog"):
                    with open(os.path.join(where, name), errors="replace") as file:
                        text += file.read()
        with open(count, "rb") as file:
            calls = int.from_bytes(file.read(8), "little")
        return code, text, calls, [str(one) for kinds in left.values() for one in kinds]

    def left(self, folder, mark):
        """Processes with the mark in their environment, once they have had the time to end; and temporary files."""
        until = time.monotonic() + ENDING_S
        while (pids := marked(mark)) and time.monotonic() < until:
            time.sleep(0.02)
        files = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names if LEFT_OVER.search(name)]
        return {"processes": pids, "files": files}

    def check(self, program, kind, number, must_succeed=False):
        code, text, calls, left = self.run(program, kind, number)
        self.runs += 1
        why = []
        if code is None:
            why.append(f"does not end within {self.options.limit:g} s")
        elif code != 0 and must_succeed:
            why.append(f"ends with {code}")
        elif code != 0 and not LINE.search(text) and not can_write_nothing(kind, number):
            why.append(f"ends with {code} and without a line")
        elif code != 0 and LIMIT.get(kind, "") not in text:
            why.append(f"ends with {code} and names no limit")
        if left:
            why.append("leaves " + ", ".join(left))
        if why:
            self.failed += 1
            print(f"FAILED: {program}:{kind}:{number} {'; '.join(why)}\n{text[-3000:]}", flush=True)
            if self.options.keep:
                shutil.copytree(os.path.join(self.folder, "run"), f"{self.options.keep}/{program}.{kind}.{number}", dirs_exist_ok=True)
        elif self.options.all:
            print(f"{program}:{kind}:{number} {code}", flush=True)
        return calls

    def walk(self, program, kind):
        calls = self.check(program, kind, "0", must_succeed=True)
        if self.options.all:
            once = lasting = range(1, calls + 1)
        else:
            once, lasting = (spread(calls, count) for count in SAMPLE[program])
        for number in once:
            self.check(program, kind, str(number))
        for number in lasting:
            self.check(program, kind, f"{number}+")
        print(f"{program}: {calls} calls of kind {kind}", flush=True)


def can_write_nothing(kind, number):
    return kind == "write" and number.endswith("+")


def spread(calls, count):
    """Up to `count` numbers from 1 to `calls`, with the same distance."""
    if calls <= count:
        return list(range(1, calls + 1))
    return sorted({round(1 + i * (calls - 1) / max(1, count - 1)) for i in range(count)})


def marked(mark):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if b"FLEET_REFUSE_COUNT=" + mark.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--programs", default="fleetrun,fleet-worker")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--keep", default="", help="a folder for the files of runs that failed")
    walk = Walk(parser.parse_args())
    try:
        for program in walk.options.programs.split(","):
            for kind in walk.options.kinds.split(","):
                walk.walk(program, kind)
        for program, kind in LACKING:
            if program in walk.options.programs:
                walk.check(program, kind, "1+", must_succeed=True)
    finally:
        shutil.rmtree(walk.folder, ignore_errors=True)
    print(f"{walk.runs} runs, {walk.failed} failed; the slowest took {walk.slowest[0]:.1f} s: {walk.slowest[1]}")
    return 1 if walk.failed else 0


if __name__ == "__main__":
    sys.exit(main())
