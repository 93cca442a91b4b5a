#!/usr/bin/env python3
"""Kills processes of jobs with parameter servers at random moments, and sees what becomes of the jobs.

    tests/chaos/servers.py [--kills N] [--seed S] [--jobs sync,tables,nodes,async,geo] [--pace F] [--parallel P] [--keep]

Each job has 2 servers and 2 trainers, on one node or two, and saves checkpoints. A strike is SIGKILL, SIGTERM, or SIGSTOP and a little later
SIGCONT, of a random server, trainer, guardian or launcher. fleetrun restarts a job that has lost a process (--max_restart); a launcher that
has ended is started again with the same command line. Every job must come to its end. Then nothing may be left of it: no process, no port,
nothing in /dev/shm or the folder of temporary files, no unfinished checkpoint. In sync the last checkpoint must equal that of a job without
strikes, byte for byte (in files of rows, all but the numbers of snapshots).

With --parallel P, P jobs run at once, each in namespaces of its own. The strikes of a job follow from the seed and the number of the job, whatever P is.

Runs in namespaces of its own, so that it sees only its own things. Exits with 77 where these are not possible, with 1 after a failure.
"""
# Builds: fleetrun fleet-worker
import argparse
import collections
import contextlib
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
PATIENCE = 120  # seconds without a strike and a line of output: a hang
STEPS = 60
STRIKES_OF_A_JOB = 6
WEIGHTS = {"server": 3, "trainer": 3, "guardian": 1, "launcher": 1}  # a launcher is there before and after all others
INSIDE = "FLEET_CHAOS_INSIDE"  # which of the parallel runs this is: "0"

LENET = {
    "model": {"name": "lenet", "num_classes": 10},
    "data": {"source": "synthetic", "batch_size": 16, "image": {"channels": 1, "height": 28, "width": 28}, "train": {"samples": 640}},
    "optimizer": {"name": "adam"},
    "learning_rate": {"name": "constant", "base": 0.001},
}
CLICKS = {
    "task": "click",
    "model": {"name": "wide_deep", "dense": False, "dim": 4, "hidden": [16]},
    "data": {"source": "synthetic_clicks", "slot_count": 3, "slot_ids": 100, "ids": 0, "batch_size": 64, "train": {"samples": 4096},
             "test": {"samples": 1024}},
    "optimizer": {"name": "adagrad"},
    "learning_rate": {"base": 0.05},
    "tables": {"embedding": {"rule": {"name": "dense_adagrad", "learning_rate": 0.1}, "initializer": {"low": -0.01, "high": 0.01}}},
}
# By name: the job, the strategy, the nodes.
JOBS = {
    "sync": (LENET, {}, 1),
    "tables": (CLICKS, {}, 1),
    "nodes": (CLICKS, {}, 2),
    "async": (LENET, {"a_sync": True, "a_sync_configs": {"max_staleness": 4}}, 1),
    "geo": (LENET, {"a_sync": True, "a_sync_configs": {"k_steps": 3}}, 1),
}


class Failure(Exception):
    pass


def processes():
    """By number: (name, environment) of all but this one."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
            if stat[stat.rindex(")") + 2] in "ZX":
                continue
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = set(file.read().split(b"\0"))
        except OSError:
            continue
        found[int(entry)] = (stat[stat.index("(") + 1:stat.rindex(")")], variables)
    return found


def roles():
    """The processes that can be struck, by role."""
    by_role = collections.defaultdict(list)
    for pid, (name, variables) in processes().items():
        if name == "fleetrun":
            by_role["launcher"].append(pid)
        elif name == "fleet-guardian":
            by_role["guardian"].append(pid)
        elif b"TRAINING_ROLE=PSERVER" in variables:
            by_role["server"].append(pid)
        elif b"TRAINING_ROLE=TRAINER" in variables:
            by_role["trainer"].append(pid)
    return by_role


class Launcher:
    def __init__(self, job, node):
        self.job, self.node, self.starts, self.process = job, node, 0, None
        self.start()

    def start(self):
        command = [os.path.join(BIN, "fleetrun"), "--max_restart=100", "--grace=5", f"--log_dir={self.job.folder}/log{self.node}"]
        if self.job.nodes == 1:
            command += ["--server_num=2", "--worker_num=2"]
        else:
            command += ["--servers=127.0.0.1:6170,127.0.0.2:6170", "--workers=127.0.0.1,127.0.0.2", f"--host=127.0.0.{self.node + 1}",
                        "--rdzv_port=6400", "--rdzv_timeout=60"]
        self.starts += 1
        with open(f"{self.job.folder}/node{self.node}.out", "ab") as out:
            self.process = subprocess.Popen(command + [f"{self.job.folder}/job.json"], cwd=self.job.folder, stdout=out, stderr=out,
                                            stdin=subprocess.DEVNULL, env=self.job.environment)

    def code(self):
        return self.process.poll()


class Job:
    def __init__(self, kind, folder):
        base, strategy, self.nodes = JOBS[kind]
        self.kind, self.folder = kind, folder
        self.output = folder + "/output"
        os.makedirs(folder + "/tmp")
        secret = {"FLEET_JOB_SECRET": "a secret of this chaos"} if self.nodes > 1 else {}
        self.environment = dict(os.environ, OMP_NUM_THREADS="1", TMPDIR=folder + "/tmp", FLEET_RUNTIME_DIR=folder + "/run",
                                XDG_CACHE_HOME=folder + "/cache", **secret)
        job = dict(base, strategy=strategy, checkpoint={"every_steps": 7, "keep": 3, "resume": "auto"},
                   train={"epochs": 1000, "max_steps": STEPS, "evaluate_every": 0, "fetch_every": 1, "deterministic": True,
                          "output": self.output, "tensorboard": False})
        with open(folder + "/job.json", "w", encoding="utf-8") as file:
            json.dump(job, file)
        self.launchers = [Launcher(self, node) for node in range(self.nodes)]

    def ended(self):
        """Whether all launchers have ended well; starts those again that have not."""
        codes = [launcher.code() for launcher in self.launchers]
        if all(code == 0 for code in codes):
            return True
        bad = [code not in (None, 0) for code in codes]
        for launcher, code, is_bad in zip(self.launchers, codes, bad):
            # A launcher that has ended well cannot end the job again with another one.
            if is_bad or (code == 0 and any(bad)):
                launcher.start()
        return False

    def written(self):
        return sum(os.path.getsize(f"{self.folder}/node{node}.out") for node in range(self.nodes))

    def checkpoint(self):
        """Of the last step: the content of its files."""
        root = f"{self.output}/checkpoints/step_{STEPS:08d}"
        content = {}
        for folder, _, files in os.walk(root):
            for name in files:
                with open(f"{folder}/{name}", "rb") as file:
                    content[os.path.relpath(f"{folder}/{name}", root)] = file.read()
        if "state.json" not in content:
            raise Failure(f"no checkpoint of step {STEPS}")
        return content


def without_versions(name, data):
    """A file of rows without the numbers of snapshots: a job that a signal has stopped has saved once more. A header of 64 bytes; rows, each
    with 16 bytes before its floats; 32 bytes for each shard, with the place and number of its rows; a checksum (ps/tables/row_file.cc)."""
    if name.endswith("manifest.json"):  # its checksums are of files with these numbers
        return re.sub(rb'"(version|crc32c)": \d+', b"", data)
    if not name.endswith(".rows"):
        return data
    first, end, floats = struct.unpack_from("<III", data, 8)
    kept = [data[:24]]
    for shard in range(end - first):
        offset, count = struct.unpack_from("<QQ", data, len(data) - 4 - 32 * (end - first - shard))
        for row in range(count):
            begin = offset + row * (16 + 4 * floats)
            kept += [data[begin:begin + 8], data[begin + 12:begin + 16 + 4 * floats]]
    return b"".join(kept)


def listening():
    """Sockets that somebody listens at."""
    found = []
    for name, state in (("tcp", "0A"), ("tcp6", "0A")):
        with open(f"/proc/net/{name}", encoding="utf-8") as file:
            found += [f"{name} {line.split()[1]}" for line in file.readlines()[1:] if line.split()[3] == state]
    with open("/proc/net/unix", encoding="utf-8") as file:
        found += ["unix " + line.split()[-1] for line in file.readlines()[1:] if int(line.split()[3], 16) & 0x10000]
    return found


def remains(job):
    """What is left of a job that has ended."""
    left = [f"process {pid} ({name})" for pid, (name, _) in processes().items()]
    left += listening() + ["/dev/shm/" + name for name in os.listdir("/dev/shm")]
    for root in (job.folder + "/tmp", job.output):
        for folder, folders, files in os.walk(root):
            for name in folders + files:
                whole = re.fullmatch(r"step_\d{8}", name) or not name.startswith("step_")
                if root.endswith("/tmp") or not whole or re.search(r"\.part|tmp|~", name):
                    left.append(f"{folder}/{name}")
    return left


def check_remains(job):
    end = time.monotonic() + 15
    while left := remains(job):
        if time.monotonic() > end:
            raise Failure("left: " + ", ".join(left[:10]))
        time.sleep(0.05)


def strike(chance, tally):
    """True if there was somebody to strike."""
    by_role = roles()
    if not by_role:
        return False
    found = sorted(by_role)
    role = chance.choices(found, [WEIGHTS[role] for role in found])[0]
    pid = chance.choice(sorted(by_role[role]))
    name = chance.choices(["kill", "stop", "term"], [14, 3, 3])[0]
    try:
        os.kill(pid, {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}[name])
        if name == "stop":
            time.sleep(chance.uniform(0.05, 1.5))
            os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return False
    tally[f"{name} {role}"] += 1
    return True


def run_job(kind, folder, strikes, chance, tally, options):
    """Runs a job to its end; returns it and the number of strikes."""
    job = Job(kind, folder)
    struck, last, written = 0, time.monotonic(), 0
    next_strike = last + chance.uniform(0, 2) * options.pace
    while not job.ended():
        now = time.monotonic()
        if struck < strikes and now >= next_strike:
            struck += strike(chance, tally)
            last = time.monotonic()
            # Often soon after a restart, often while training.
            next_strike = last + options.pace * chance.choice([chance.uniform(0, 0.5), chance.uniform(0.5, 2.5)])
        if job.written() > written:
            written, last = job.written(), now
        if now - last > PATIENCE:
            raise Failure(f"hangs: {sorted((name, pid) for pid, (name, _) in processes().items())}")
        time.sleep(0.01)
    check_remains(job)
    return job, struck


def same(content, expected):
    """Names of files that differ."""
    return sorted(name for name in content.keys() | expected.keys()
                  if without_versions(name, content.get(name, b"")) != without_versions(name, expected.get(name, b"")))


def chaos(options):
    base = tempfile.mkdtemp(prefix="fleet-chaos-servers-")
    number = int(os.environ[INSIDE])
    kinds = options.jobs.split(",")
    expected, failed = {}, 0
    tallies = {kind: collections.Counter() for kind in kinds}
    strikes, jobs = 0, 0
    for kind in kinds:
        if JOBS[kind][1]:
            continue  # without strikes, other runs differ too
        twin = [other for other in expected if JOBS[other][:2] == JOBS[kind][:2]]
        if twin:
            expected[kind] = expected[twin[0]]
            continue
        job, _ = run_job(kind, f"{base}/undisturbed-{kind}", 0, random.Random(0), collections.Counter(), options)
        expected[kind] = job.checkpoint()
        shutil.rmtree(job.folder)
    while strikes < options.kills:
        kind = kinds[number % len(kinds)]
        chance = random.Random(options.seed * 1_000_003 + number)
        folder = f"{base}/{number}-{kind}"
        tally = tallies[kind]
        most = min(options.kills - strikes, STRIKES_OF_A_JOB)
        try:
            job, _ = run_job(kind, folder, most, chance, tally, options)
            content = job.checkpoint()
            differ = same(content, expected.get(kind, content))
            if differ:
                raise Failure(f"the last checkpoint differs in {', '.join(differ[:4])}")
            tally["starts"] += sum(launcher.starts for launcher in job.launchers)
            if not options.keep:
                shutil.rmtree(folder)
        except Failure as failure:
            failed += 1
            print(f"job {number} ({kind}, --seed {options.seed}): {failure}\n  its folder: {folder}", flush=True)
            while left := processes():
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)
        tally["jobs"] += 1
        strikes = sum(count for one in tallies.values() for name, count in one.items() if name not in ("jobs", "starts"))
        number += options.parallel
        jobs += 1
        print(f"{strikes} strikes on {jobs} jobs", file=sys.stderr, flush=True)
    if not failed and not options.keep:
        shutil.rmtree(base)
    with open(options.result, "w", encoding="utf-8") as file:
        json.dump({"failed": failed, "tallies": tallies}, file)
    return 0


def summary(results, seconds):
    """Prints the sum of parallel runs; returns the exit code."""
    tallies = collections.defaultdict(collections.Counter)
    for result in results:
        for kind, tally in result["tallies"].items():
            tallies[kind].update(tally)
    strikes = 0
    for kind, tally in tallies.items():
        counts = {name: count for name, count in sorted(tally.items()) if name not in ("jobs", "starts")}
        strikes += sum(counts.values())
        print(f"{kind:7} {tally['jobs']:4} jobs, {tally['starts']:4} starts by hand: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    jobs, failed = sum(tally["jobs"] for tally in tallies.values()), sum(result["failed"] for result in results)
    print(f"{strikes} strikes on {jobs} jobs in {seconds:.0f} s: {jobs - failed} ended right, {failed} wrong")
    return 1 if failed else 0


def run_parallel(options):
    space = ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run(space + ["ip", "link", "set", "lo", "up"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        print("SKIP: this machine allows no namespaces (unshare, ip)")
        return 77
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fleet-chaos-results-") as folder:
        runs, paths = [], [f"{folder}/{i}.json" for i in range(options.parallel)]
        for i, path in enumerate(paths):
            kills = options.kills // options.parallel + (i < options.kills % options.parallel)
            command = [sys.executable, *sys.argv, "--kills", str(kills), "--result", path]
            runs.append(subprocess.Popen(space + command, env=dict(os.environ, **{INSIDE: str(i)})))
        codes = [run.wait() for run in runs]
        if any(codes):
            print(f"FAILED: the runs ended with {codes}")
            return 1
        results = []
        for path in paths:
            with open(path, encoding="utf-8") as file:
                results.append(json.load(file))
        return summary(results, time.monotonic() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--pace", type=float, default=1, help="a factor for the times between strikes, for a busy machine")
    parser.add_argument("--parallel", type=int, default=1, help="jobs that run at once")
    parser.add_argument("--result", help=argparse.SUPPRESS)
    parser.add_argument("--keep", action="store_true", help="keep the folders of the jobs")
    options = parser.parse_args()
    if not os.environ.get(INSIDE):
        return run_parallel(options)
    for command in (["ip", "link", "set", "lo", "up"], ["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]):
        subprocess.run(command, check=True)
    return chaos(options)


if __name__ == "__main__":
    sys.exit(main())
