#!/usr/bin/env python3
"""What it costs to look at a job.

    tests/bench/seen.py step [PAIRS]    a step of two ranks with everything on (--metrics scraped and top attached once a second,
                                        TensorBoard files) against a step with all of it off, in turns; and the CPU time of the
                                        whole job with its launcher and top, which other work on the machine disturbs less
    tests/bench/seen.py trace [PAIRS]   a step while `fleetrun trace` records 200 steps against a step of a job without, in turns
    tests/bench/seen.py top [SECONDS]   the CPU time of top at 1 Hz on a terminal, of the launcher and of its guardian, for 8 ranks
    tests/bench/seen.py                 all of them

The ranks' cores must be free otherwise.
"""
# Builds: fleetrun fleet-worker launch_rank_helper
import json
import os
import pty
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
PORT = 19400
STEPS, WARM = 240, 40
TRACED = 200  # steps of a trace that begins before WARM steps are done


def job_file(folder, tensorboard):
    job = {
        "model": {"name": "resnet20", "num_classes": 10},
        "data": {"source": "synthetic", "batch_size": 32, "image": {"channels": 3, "height": 32, "width": 32}, "threads": 1,
                 "train": {"samples": 64 * STEPS}},
        "optimizer": {"name": "momentum", "momentum": 0.9},
        "learning_rate": {"name": "constant", "base": 0.01},
        "train": {"epochs": 1, "fetch_every": 10, "evaluate_every": 0, "tensorboard": tensorboard,
                  "output": os.path.join(folder, "out")},
        "checkpoint": {"at_end": False},
    }
    path = os.path.join(folder, "job.json")
    with open(path, "w") as file:
        json.dump(job, file)
    return path


def start(folder, name, arguments):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.Popen([os.path.join(BIN, "fleetrun"), "--job_id=" + name, "--log_dir=" + os.path.join(folder, "log"), *arguments],
                            cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Terminal:
    """A program on a terminal that somebody looks at."""

    def __init__(self, command):
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)
        self.bytes = 0
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            while True:
                self.bytes += len(os.read(self.end, 65536))
        except OSError:
            pass

    def stop(self):
        try:
            os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        usage = os.wait4(self.pid, 0)[2]
        return usage.ru_utime + usage.ru_stime


def wait_for_job(name):
    command = [os.path.join(BIN, "fleetrun"), "top", name, "--once", "--format=json"]
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode == 0 and any(rank["step"] for rank in json.loads(done.stdout)["ranks"]):
            return
        time.sleep(0.1)
    raise RuntimeError("the job does not run")


def scrape(stop, scraped):
    while not stop.wait(1.0):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=5) as reply:
                scraped.append(len(reply.read()))
        except OSError:
            pass


def step_seconds(folder):
    """The mean of a step after the first ones, while a trace would record, by the ranks' own clock."""
    times = []
    with open(os.path.join(folder, "out", "metrics.jsonl")) as file:
        for line in file:
            record = json.loads(line)
            if record.get("event") == "train" and WARM < record.get("step", 0) <= TRACED:
                times.append(record["batch_time"])
    if len(times) < 10:
        raise RuntimeError("too few records")
    return statistics.mean(times)


def one_run(extra):
    """A step's and the job's seconds. extra: None, "everything" or "trace"."""
    folder = tempfile.mkdtemp(prefix="fleet_seen_")
    try:
        everything = extra == "everything"
        more = [f"--metrics=127.0.0.1:{PORT}"] if everything else []
        job = start(folder, "seen", ["--nproc_per_node=2", *more, job_file(folder, everything)])
        stop, scraped, top, trace = threading.Event(), [], None, None
        if extra:
            wait_for_job("seen")
        if everything:
            threading.Thread(target=scrape, args=(stop, scraped), daemon=True).start()
            top = Terminal([os.path.join(BIN, "fleetrun"), "top", "seen"])
        if extra == "trace":
            trace = subprocess.Popen([os.path.join(BIN, "fleetrun"), "trace", "seen", "--steps", str(TRACED), "-o",
                                      os.path.join(folder, "seen.perfetto-trace")], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(job.pid, 0)  # with its guardian and its ranks
        cpu = usage.ru_utime + usage.ru_stime
        stop.set()
        if top:
            cpu += top.stop()
        if status != 0:
            raise RuntimeError(f"the job ended with {status}")
        if everything and not scraped:
            raise RuntimeError("nothing was scraped")
        if trace and trace.wait() != 0:
            raise RuntimeError("the trace lacks something: see above")
        return step_seconds(folder), cpu
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(extra, pairs, allowed):
    on, off = [], []
    for pair in range(pairs):
        for one in (extra, None) if pair % 2 else (None, extra):
            (on if one else off).append(one_run(one))

    def text(values):
        return " ".join(f"{1e3 * one:.2f}" for one in values)

    for name, at in (("a step, ms", 0), ("CPU time of the job, ms", 1)):
        a, b = [one[at] for one in on], [one[at] for one in off]
        print(f"{name}: off {text(b)}; {extra} {text(a)}")
        each = sorted(x / y for x, y in zip(a, b))
        print(f"{extra}: ratio {statistics.median(a) / statistics.median(b):.4f} of the medians; {min(a) / min(b):.4f} of the least; "
              f"pairs {each[0]:.4f} to {each[-1]:.4f}; {allowed} allowed", flush=True)


def ticks(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += [int(one) for one in file.read().split()]
    return found


def top(seconds):
    folder = tempfile.mkdtemp(prefix="fleet_seen_")
    ranks = [os.path.join(BIN, "launch_rank_helper"), "steps", "20", "50"]
    job = start(folder, "eight", ["--nproc_per_node=8", *ranks])
    try:
        wait_for_job("eight")
        time.sleep(10)
        guardian = children(job.pid)[0]
        programs = {"launcher": job.pid, "guardian": guardian}

        def measure(length):
            before = {name: ticks(pid) for name, pid in programs.items()}
            time.sleep(length)
            return {name: (ticks(pid) - before[name]) / length for name, pid in programs.items()}

        alone = measure(seconds / 2)
        terminal = Terminal([os.path.join(BIN, "fleetrun"), "top", "eight"])
        programs["top"] = terminal.pid
        time.sleep(2)
        seen = measure(seconds)
        drawn = terminal.bytes
        terminal.stop()
        print(f"of a core, without top: launcher {100 * alone['launcher']:.2f} %, guardian {100 * alone['guardian']:.2f} %")
        print(f"of a core, with top at 1 Hz: top {100 * seen['top']:.2f} %, launcher {100 * seen['launcher']:.2f} %, guardian "
              f"{100 * seen['guardian']:.2f} %; {drawn} bytes drawn")
        print(f"ratio {seen['top'] / 0.01:.3f} of the 1 % of a core that top may take")
    finally:
        job.send_signal(signal.SIGTERM)
        job.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else "all"
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if what not in ("step", "trace", "top", "all"):
        sys.exit(__doc__)
    if what in ("step", "all"):
        compare("everything", number or 6, 1.01)
    if what in ("trace", "all"):
        compare("trace", number or 6, 1.03)
    if what in ("top", "all"):
        top(number or 60)


if __name__ == "__main__":
    main()
