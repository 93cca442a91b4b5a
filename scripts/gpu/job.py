"""Runs training jobs with fleet-worker and reads their output."""
import array
import json
import os
import re
import shutil
import statistics
import struct
import threading
import time

import machine
import process


def settings(values):
    words = []
    for key, value in values.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        words += ["--set", f"{key}={text}"]
    return words


class Job:
    """One run of a job file: its outcome, the loss of each fetched step, its speed and its weights."""

    def __init__(self, context, name, file, overrides, env=None, limit=120, watch_memory=False):
        self.folder = os.path.join(context.folder, "jobs", name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        overrides = dict(overrides)
        overrides["train.output"] = self.folder
        argv = [os.path.join(context.bin, "fleet-worker"), file] + settings(overrides)
        watch = MemoryWatch(context.gpu) if watch_memory and context.gpu else None
        self.outcome = process.run(argv, context.allow(limit), {**context.env, **(env or {})}, self.folder)
        self.memory_mib = watch.stop() if watch else None
        context.log(f"$ {' '.join(argv)}\n{self.outcome.output}")
        self.events = read_events(os.path.join(self.folder, "metrics.jsonl"))

    @property
    def ok(self):
        return self.outcome.ok

    def why(self):
        return f"{self.outcome.why()}: {self.outcome.last_line()}"

    @property
    def device(self):
        """The device according to its output: "cpu" if it fell back to the CPU, else "as asked"."""
        return "cpu" if re.search("the CPU is used|runs on the CPU", self.outcome.output) else "as asked"

    def losses(self):
        return {event["step"]: as_number(event["loss"]) for event in self.events if event["event"] == "train"}

    def test_acc1(self):
        found = [event["acc1"] for event in self.events if event["event"] == "test"]
        return found[-1] if found else None

    def speeds(self, batch, skip):
        """Images per second between fetched steps (each waits for the device), without the first `skip` steps."""
        points = [(event["step"], event["time"]) for event in self.events if event["event"] == "train"]
        points = [point for point in points if point[0] >= skip]
        return [batch * (b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(points, points[1:]) if b[1] > a[1]]

    def speed(self, batch, skip):
        speeds = self.speeds(batch, skip)
        return statistics.median(speeds) if speeds else 0.0

    def weights_file(self):
        root = os.path.join(self.folder, "checkpoints")
        found = []
        for name in os.listdir(root) if os.path.isdir(root) else ():
            file = os.path.join(root, name, "model.safetensors")
            if os.path.exists(file):
                found.append((os.path.getmtime(file), file))
        return max(found)[1] if found else None

    def weights(self):
        """The float32 tensors of the last checkpoint, by name."""
        file = self.weights_file()
        return read_safetensors(file) if file else {}


def finished(folder):
    """A Job that something else has run there."""
    run = object.__new__(Job)
    run.folder, run.events = folder, read_events(os.path.join(folder, "metrics.jsonl"))
    return run


class MemoryWatch:
    """Peak GPU memory in use above that at the start, in MiB, sampled ten times per second."""

    def __init__(self, gpu):
        self._gpu, self._base, self._most, self._done = gpu, gpu.used_mib(), None, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        while True:
            used = self._gpu.used_mib()
            if used is not None and self._base is not None:
                self._most = max(self._most or 0, used - self._base)
            if self._done.wait(0.1):
                return

    def stop(self):
        self._done.set()
        self._thread.join(5)
        return self._most


def as_number(value):
    return float(value) if isinstance(value, (int, float, str)) else float("nan")


def read_events(path):
    events = []
    if os.path.exists(path):
        with open(path) as lines:
            for line in lines:
                try:
                    events.append(json.loads(line))
                except ValueError:
                    pass  # incomplete line of a killed process
    return events


def read_safetensors(path):
    tensors = {}
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        start = file.tell()
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] != "F32":
                continue
            begin, end = entry["data_offsets"]
            file.seek(start + begin)
            values = array.array("f")
            values.frombytes(file.read(end - begin))
            tensors[name] = values
    return tensors


def distance(a, b):
    """The largest difference of two sets of weights relative to the largest weight; infinity if they do not match or are not finite."""
    if not a or a.keys() != b.keys() or any(len(a[name]) != len(b[name]) for name in a):
        return float("inf")
    difference = max(max(abs(x - y) for x, y in zip(a[name], b[name])) for name in a)
    scale = max(max(abs(x) for x in a[name]) for name in a)
    finite = all(value == value for name in a for value in list(a[name]) + list(b[name]))
    return difference / scale if finite and scale > 0 else float("inf")


def accepts(context, file, overrides, env=None):
    """Returns "" if this build accepts these settings, else its one-line error."""
    argv = [os.path.join(context.bin, "fleet-worker"), file, "--print_program"] + settings(overrides)
    outcome = process.run(argv, 120, {**context.env, **(env or {})})
    return "" if outcome.ok else outcome.last_line()


class Context:
    """Everything that the parts need: folders, the device and additions to the environment."""

    def __init__(self, folder, smoke):
        self.smoke = smoke
        self.device = "cpu" if smoke else "cuda"
        self.bin = machine.program_folder()
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.gpu = None if smoke else machine.Gpu()
        self.env, self.libraries = ({}, []) if smoke else machine.cuda_environment(self.bin)
        self._log = open(os.path.join(self.folder, "log.txt"), "w", buffering=1)
        self.begun = time.monotonic()
        self.end = float("inf")  # deadline of the current part
        self.patience = 4 if smoke else 1  # a busy CPU is not a hung GPU

    def allow(self, seconds):
        """A time limit, reduced to the time left of the current part."""
        return max(1.0, min(seconds * self.patience, self.end - time.monotonic()))

    def log(self, text):
        self._log.write(text if text.endswith("\n") else text + "\n")

    def close(self):
        self._log.close()

    def describe(self):
        gpu = self.gpu.describe() if self.gpu else {"gpu": None}
        return {**gpu, "device": self.device, "programs": self.bin, "libraries": self.libraries}


def file_of(*parts):
    return os.path.join(machine.ROOT, *parts)


def printed(outcome, pattern):
    return re.search(pattern, outcome.output, re.MULTILINE)
