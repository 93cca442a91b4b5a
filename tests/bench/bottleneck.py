#!/usr/bin/env python3
"""Faults injected into training jobs of two ranks: how many of them fleetrun names right, and how many healthy jobs raise an alarm.

    tests/bench/bottleneck.py [TRIALS] [--kinds=disk,decode,small,cached,load,nice,quota,link,two,healthy] [--seed=N] [--seconds=S]

    disk     every read of a sample sleeps                        input, and that the threads read
    decode   one data thread for images that are slow to decode   input, and more data.threads if a core is free for them
    small    small images, both ranks on two cores                input: their own data threads take the cores
    cached   the same with data.cache=decoded                     input, or host without other processes, or none
    load     two busy processes on the cores of the ranks         host, and the other processes
    nice     a rank has a lower priority than a process on its core   straggler, and its number
    quota    a CPU quota stops both ranks                         host, and the quota
    link     the ranks' TCP connections are slow                  communication
    two      a slow disk and a slow link at once                  both: each costs at least a fifth of the lost time
    healthy  no fault                                             no cause

Each trial draws its magnitudes anew; --seed repeats a run. Needs root; a kind that this machine cannot inject is skipped visibly. A
trial in which processes other than its own used more than a twentieth of the time of its cores says nothing: it is repeated, at most
three times.
"""
# Builds: fleetrun fleet-worker
import argparse
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
CGROUPS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup")
SAMPLES = 512
MANY_SAMPLES = 4096  # for steps so short that epochs of SAMPLES would be mostly their beginnings
MOST_FOREIGN = 0.05  # of the time of the cores
ATTEMPTS = 3

SLOW_READ = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>
/* Opening a file of the data set takes as long as a disk that seeks. */
static void wait_for(const char* path) {
  const char* folder = getenv("SLOW_FOLDER");
  if (folder && path && strstr(path, folder) && strstr(path, ".png")) usleep(atoi(getenv("SLOW_US")));
}
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = va_arg(list, int);
  va_end(list);
  wait_for(path);
  return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = va_arg(list, int);
  va_end(list);
  wait_for(path);
  return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open64"))(path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  wait_for(path);
  return ((FILE* (*)(const char*, const char*))dlsym(RTLD_NEXT, "fopen"))(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  wait_for(path);
  return ((FILE* (*)(const char*, const char*))dlsym(RTLD_NEXT, "fopen64"))(path, mode);
}
"""


def png(path, side, rng, channels):
    """An image of noise, which does not compress; channels: 1 (grey) or 3."""
    rows = b"".join(b"\0" + rng.randbytes(side * channels) for _ in range(side))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2 if channels == 3 else 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def make_images(folder, side, rng, channels=1, samples=SAMPLES):
    for label in ("a", "b"):
        os.makedirs(os.path.join(folder, "train", label))
        for number in range(samples // 2):
            png(os.path.join(folder, "train", label, f"{number}.png"), side, rng, channels)


def busy_seconds(cores):
    """Of all processes of the machine, on these cores, since it started."""
    wanted = {f"cpu{core}" for core in cores}
    ticks = 0
    with open("/proc/stat") as lines:
        for line in lines:
            name, *values = line.split()
            if name in wanted:
                user, nice, system, _, _, irq, softirq, steal = map(int, values[:8])
                ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Skip(Exception):
    pass


class Trial:
    def __init__(self, folder, kind, rng, seconds):
        self.folder, self.kind, self.rng, self.seconds = folder, kind, rng, seconds
        self.before, self.environment, self.helpers, self.note, self.cgroup, self.cores = [], {}, [], "", None, ""
        self.foreign = 0.0  # after run(): the part of the cores' time that other processes used
        self.port = random.randrange(20000, 60000)
        self.job = {
            "model": {"name": "resnet20", "num_classes": 10},
            "data": {"source": "synthetic", "batch_size": 32, "image": {"channels": 3, "height": 32, "width": 32}, "threads": 1,
                     "train": {"samples": 25600}},
            "optimizer": {"name": "momentum", "momentum": 0.9},
            "learning_rate": {"name": "constant", "base": 0.01},
            "train": {"epochs": 100000, "fetch_every": 10, "evaluate_every": 0, "output": os.path.join(folder, "out")},
            "checkpoint": {"at_end": False},
        }

    def use_images(self, side, batch):
        self.job["model"] = {"name": "lenet", "num_classes": 2}
        make_images(os.path.join(self.folder, "images"), side, self.rng)
        self.job["data"] = {"source": "image_folder", "root": os.path.join(self.folder, "images"), "batch_size": batch,
                            "image": {"channels": 1, "height": 28, "width": 28}, "threads": 1,
                            "train": {"folder": "train"}, "test": {"folder": ""}, "augment": {"resize": 28}}

    def disk(self, most=12000):
        self.use_images(32, 32)
        source, library = os.path.join(self.folder, "slow.c"), os.path.join(self.folder, "slow.so")
        with open(source, "w") as file:
            file.write(SLOW_READ)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        micros = self.rng.randrange(1500, most)
        self.environment.update(LD_PRELOAD=library, SLOW_FOLDER=os.path.join(self.folder, "images"), SLOW_US=str(micros))
        self.note = f"{micros} us a read"

    def decode(self):
        side = self.rng.randrange(500, 900)
        self.use_images(side, 32)
        self.note = f"{side} x {side} pixels"

    def two_cores(self):
        self.cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
        self.before = ["taskset", "-c", self.cores]

    def small(self, **data):
        """As many data threads as the job chooses, as in most jobs."""
        side = self.rng.randrange(32, 64)
        make_images(os.path.join(self.folder, "images"), side, self.rng, 3, MANY_SAMPLES)
        self.two_cores()
        self.job["model"] = {"name": "mlp", "num_classes": 2}
        self.job["data"] = {"source": "image_folder", "root": os.path.join(self.folder, "images"), "batch_size": 64,
                            "image": {"channels": 3, "height": side, "width": side}, "train": {"folder": "train"},
                            "test": {"folder": ""}, "augment": {"random_crop_padding": 4, "flip": True}, **data}
        self.note = f"{side} x {side} pixels"

    def cached(self):
        self.small(cache="decoded")

    def load(self):
        self.two_cores()
        for _ in range(2):
            self.helpers.append(subprocess.Popen(["taskset", "-c", self.cores, sys.executable, "-c", "while True: pass"]))
        self.note = "cores " + self.cores

    def nice(self):
        self.niced, self.level = self.rng.randrange(2), self.rng.choice([3, 5, 7, 10])
        self.note = f"rank {self.niced}, nice {self.level}"

    def quota(self):
        root = next((path for path in CGROUPS if os.access(os.path.join(path, "cgroup.procs"), os.W_OK) and
                     os.path.exists(os.path.join(path, "cpu.shares" if path.endswith("cpu") else "cgroup.subtree_control"))), None)
        if not root:
            raise Skip("no writable cgroup")
        self.cgroup = os.path.join(root, f"fleetrun_bench_{os.getpid()}_{self.port}")
        cores = self.rng.uniform(0.5, 1.2)
        try:
            os.mkdir(self.cgroup)
            v1 = os.path.exists(os.path.join(self.cgroup, "cpu.cfs_quota_us"))
            with open(os.path.join(self.cgroup, "cpu.cfs_quota_us" if v1 else "cpu.max"), "w") as file:
                file.write(str(int(cores * 100000)) + ("" if v1 else " 100000"))
        except OSError as error:
            raise Skip(f"no cgroup with a CPU quota: {error}") from error
        self.before = ["sh", "-c", f'echo $$ >{self.cgroup}/cgroup.procs && exec "$@"', "sh"]
        self.note = f"{cores:.2f} cores"

    def link(self, low=60, high=300):
        rate = self.rng.randrange(low, high)
        burst = rate * 1000000 // 8 // 1000 + 20000
        probe = subprocess.run(["unshare", "-n", "sh", "-c", f"ip link set lo up && tc qdisc add dev lo root tbf rate {rate}mbit "
                                f"burst {burst} latency 200ms"], capture_output=True, text=True, check=False)
        if probe.returncode:
            raise Skip("no network namespace with a token bucket: " + probe.stderr.strip())
        self.before = ["unshare", "-n", "sh", "-c", f"ip link set lo up && ip link set lo mtu 1500 && tc qdisc add dev lo root tbf "
                       f'rate {rate}mbit burst {burst} latency 200ms && exec "$@"', "sh"]
        self.job["comm"] = {"backend": "gloo"}
        self.job["model"] = {"name": "lenet", "num_classes": 2}
        if self.kind == "link":
            self.job["data"].update(batch_size=128, image={"channels": 1, "height": 28, "width": 28})
        self.note = f"{rate} Mbit/s"

    def two(self):
        self.disk(3500)
        note = self.note
        self.link(100, 200)
        self.note = note + ", " + self.note

    def healthy(self):
        self.job["data"]["batch_size"] = self.rng.choice([24, 32, 48])
        self.note = f"batch {self.job['data']['batch_size']}"

    def command(self, *words):
        return [os.path.join(BIN, "fleetrun"), *words]

    def run(self):
        getattr(self, self.kind)()
        path = os.path.join(self.folder, "job.json")
        with open(path, "w") as file:
            json.dump(self.job, file)
        environment = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", FLEET_RUNTIME_DIR=self.folder + "/run")
        worker = dict(environment, **self.environment)
        cores = self.cores.split(",") if self.cores else os.sched_getaffinity(0)
        begun, busy, own = time.monotonic(), busy_seconds(cores), own_seconds()
        with open(os.path.join(self.folder, "out.txt"), "w") as out:
            job = subprocess.Popen(self.before + self.command("--nproc_per_node=2", "--job_id=bench", "--log_dir=" + self.folder + "/log",
                                                              path), env=worker, stdout=out, stderr=out, cwd=self.folder)
        try:
            time.sleep(3)
            if self.kind == "nice":
                self.lower_priority(environment)
            time.sleep(self.seconds)
        finally:
            job.send_signal(signal.SIGTERM)
            code = job.wait()
            for helper in self.helpers:
                helper.kill()
                helper.wait()
            if self.cgroup:
                os.rmdir(self.cgroup)
        foreign = (busy_seconds(cores) - busy) - (own_seconds() - own)
        self.foreign = max(0.0, foreign) / (len(cores) * (time.monotonic() - begun))
        if code != 128 + signal.SIGTERM:
            with open(os.path.join(self.folder, "out.txt")) as out:
                sys.exit(f"{self.kind}: the job ended with {code}:\n{out.read()[-2000:]}")
        with open(os.path.join(self.folder, "log", "verdict.json")) as file:
            return json.load(file)["bottleneck"]

    def lower_priority(self, environment):
        status = subprocess.run(self.command("status", "bench", "--format=json", f"--fleetd_port={self.port}"), env=environment,
                                capture_output=True, text=True, check=True)
        ranks = {rank["rank"]: rank["pid"] for rank in json.loads(status.stdout)[0]["ranks"]}
        for rank, pid in ranks.items():
            subprocess.run(["taskset", "-a", "-p", "-c", str(rank), str(pid)], check=True, stdout=subprocess.DEVNULL)
        for task in os.listdir(f"/proc/{ranks[self.niced]}/task"):
            subprocess.run(["renice", "-n", str(self.level), "-p", task], check=False, stdout=subprocess.DEVNULL)
        self.helpers.append(subprocess.Popen(["taskset", "-c", str(self.niced), sys.executable, "-c", "while True: pass"]))

    def right(self, found):
        causes = found["causes"] if found else []
        kinds = {cause["kind"] for cause in causes}
        actions = " ".join(cause["action"] for cause in causes)
        if self.kind == "disk":
            return kinds == {"input"} and "reading" in actions
        if self.kind == "decode":
            action = "data.threads 1 -> " if len(os.sched_getaffinity(0)) >= 4 else "the data threads use all cores"
            return kinds == {"input"} and action in actions and "reading" not in actions
        if self.kind == "small":
            return kinds == {"input"} and "the data threads use all cores" in actions
        if self.kind == "cached":
            return found is not None and kinds <= {"input", "host"} and "processes" not in actions
        if self.kind == "load":
            return kinds == {"host"} and "processes" in actions
        if self.kind == "nice":
            return kinds == {"straggler"} and causes[0]["rank"] == self.niced and "nice" in actions
        if self.kind == "quota":
            return kinds == {"host"} and "quota" in actions
        if self.kind == "link":
            return kinds == {"communication"}
        if self.kind == "two":
            return kinds == {"input", "communication"}
        return found is not None and not causes


def undisturbed(kind, rng, seconds):
    """A trial that says something, and what fleetrun found; None after ATTEMPTS disturbed ones. Skip: the kind is not possible here."""
    for _ in range(ATTEMPTS):
        folder = tempfile.mkdtemp(prefix="fleet_bottleneck_")
        trial = Trial(folder, kind, rng, seconds)
        try:
            found = trial.run()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if trial.foreign <= MOST_FOREIGN:
            return trial, found
        print(f"again  {kind} ({trial.note}): other processes used {trial.foreign:.0%} of the time of the cores", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser(description="names of injected faults")
    parser.add_argument("trials", type=int, nargs="?", default=4, help="of each kind")
    parser.add_argument("--kinds", default="disk,decode,small,cached,load,nice,quota,link,two,healthy")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--seconds", type=float, default=15, help="how long a job runs under its fault")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print(f"seed {options.seed}", flush=True)
    counts, disturbed = {}, 0  # by kind: right ones, and all
    for kind in options.kinds.split(","):
        for _ in range(options.trials):
            try:
                done = undisturbed(kind, rng, options.seconds)
            except Skip as reason:
                print(f"SKIP {kind}: {reason}")
                break
            if not done:
                disturbed += 1
                continue
            trial, found = done
            good = bool(trial.right(found))
            right, all_of_kind = counts.get(kind, (0, 0))
            counts[kind] = right + good, all_of_kind + 1
            line = found["line"] if found else "nothing"
            print(f"{'right' if good else 'WRONG'}  {kind} ({trial.note}; other processes {trial.foreign:.0%}): {line}", flush=True)
    for kind, (right, all_of_kind) in counts.items():
        print(f"{kind}: {right} of {all_of_kind} right")
    if disturbed:
        print(f"{disturbed} trials were not measured: other processes use the cores")
    return 0 if not disturbed and all(right == all_of_kind for right, all_of_kind in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
