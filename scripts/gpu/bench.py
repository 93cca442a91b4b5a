"""Measures one GPU against PyTorch on the same card in the same run: see scripts/gpu_bench.sh."""
import argparse
import json
import os
import re
import statistics
import sys
import time

import families
import images
import job
import machine
import process
import report
import roofline
import switches
import trace_cost
from job import Job, MemoryWatch

SKIPPED = 77
RESNET50 = job.file_of("tests", "bench", "jobs", "resnet50.json")
JPEG = job.file_of("tests", "bench", "jobs", "resnet50_jpeg.json")
# Repeats one batch, to measure the step and not the input. The peer's synthetic batch also stays on its card.
SYNTHETIC = {"FLAGS_reader_queue_speed_test_mode": "1"}


class Bench(job.Context):
    """One run of a benchmark: its time, rows and notes."""

    def __init__(self, options):
        super().__init__(options.output, options.smoke)
        self.options, self.rows, self.notes = options, [], []
        self.python = os.environ.get("FLEET_TORCH_PYTHON") or "python3"

    def left(self):
        return self.options.limit - (time.monotonic() - self.begun)

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)
            print(f"note: {text}", flush=True)

    def add(self, who, value, unit, **more):
        row = {"who": who, "value": value, "unit": unit, **{key: item for key, item in more.items() if item is not None}}
        self.rows.append(row)
        extra = ", ".join(f"{key} {text(item)}" for key, item in row.items() if key not in ("who", "value", "unit"))
        print(f"{who}: {text(value)} {unit}" + (f" ({extra})" if extra else ""), flush=True)
        report.write_json(self.folder, f"{self.options.name}.json",
                          {"name": self.options.name, **self.describe(), "rows": self.rows, "notes": self.notes})
        return row

    def usable(self, file, *wanted):
        """Merges the settings without those that this build does not know, which a note names."""
        chosen = {}
        for values in wanted:
            why = job.accepts(self, file, {**chosen, **values}) if values else ""
            if why:
                self.note(f"left out {', '.join(values)}: {why}")
            else:
                chosen.update(values)
        return chosen

    # --- ours ------------------------------------------------------------------------------------------------------------

    def ours(self, who, batch, low, *wanted, files=None, steps=300, fetch=20, file=RESNET50, limit=100, watch=False):
        """A row with fleet-worker's speed, or None (and a note) if it failed. low: the precision. Other settings are left out if
        this build does not support them."""
        values = {"train.device": self.device, "data.batch_size": batch, "train.max_steps": steps, "train.fetch_every": fetch}
        if self.smoke:
            values.update({"data.batch_size": 4, "train.max_steps": 4, "train.fetch_every": 1, "data.image.height": 64,
                           "data.image.width": 64})
        batch, fetch = values["data.batch_size"], values["train.fetch_every"]
        values.update(files or {})
        values.update(self.usable(file, low, *wanted) if self.smoke else {**low, **self.usable(file, *wanted)})
        environment = SYNTHETIC if file == RESNET50 else {}
        limit = min(limit, max(10, self.left()))
        run = Job(self, who.replace(" ", "_"), file, values, environment, limit, watch)
        if not run.ok or run.device == "cpu":
            self.note(f"{who} failed: {run.why() if not run.ok else 'it ran on the CPU'}")
            return None
        # Skip the first steps, which choose algorithms and record graphs.
        speeds = run.speeds(batch, skip=1 if self.smoke else 3 * fetch - 1)
        if not speeds:
            self.note(f"{who}: no speed in metrics.jsonl")
            return None
        return self.add(who, statistics.median(speeds), "images/s", step_ms=1000 * batch / statistics.median(speeds),
                        slowest=min(speeds), fastest=max(speeds), loss=run.losses()[max(run.losses())], memory_mib=run.memory_mib)

    # --- the peer --------------------------------------------------------------------------------------------------------

    def peer(self, batch, mode, dtype, *more, limit=100, watch=False, seconds=8):
        """A row with PyTorch's speed, or None (and a note)."""
        who = f"PyTorch {mode} {dtype}"
        if self.left() < 20:
            self.note(f"{who}: no time left")
            return None
        script = job.file_of("tests", "bench", "peers", "resnet50_gpu.py")
        argv = [self.python, "-B", script, "--mode", mode, "--dtype", dtype]
        argv += ["--device", "cpu", "--batch", "4", "--size", "64", "--seconds", "1", "--warmup", "1", "--workers", "1"] \
            if self.smoke else ["--batch", str(batch), "--seconds", str(seconds)]
        watcher = MemoryWatch(self.gpu) if watch and self.gpu else None
        outcome = process.run(argv + list(more), min(limit, self.left()), sweep=True)
        memory = watcher.stop() if watcher else None
        self.log(f"$ {' '.join(argv + list(more))}\n{outcome.output}")
        result = read_result(outcome)
        if result is None:
            self.note(f"{who}: {outcome.last_line() if outcome.ok else outcome.why() + ': ' + outcome.last_line()}")
            return None
        return self.add(who, result["images_per_s"], "images/s", loss=result["loss"], prepared_s=result["prepared_s"],
                        memory_mib=memory, reserved_mib=result["reserved_mib"], torch=result["torch"])

    def peers(self, batch, cases, *more, reserve=0):
        """Runs all (mode, dtype) while time remains. Compiling takes minutes, so each has a limit."""
        rows = []
        for mode, dtype in cases if not self.smoke else [("eager", "bfloat16")]:
            limit = {"compile": 150, "max-autotune": 300}.get(mode, 60)
            if self.left() - reserve < 25:
                self.note(f"PyTorch {mode} {dtype}: no time left")
                continue
            row = self.peer(batch, mode, dtype, *more, limit=min(limit, self.left() - reserve))
            if row is None and any("torch is not installed" in note for note in self.notes):
                self.note("PyTorch is missing: ours alone")
                break
            rows.append(row)
        return [row for row in rows if row]

    def ratio(self, ours, peers, best=max):
        """Prints the last line. Returns 1 if our runs failed."""
        ours = [row for row in ours if row]
        if not ours:
            print(f"{self.options.name}: FAILED: no figure of ours; see {os.path.join(self.folder, 'log.txt')}")
            return 1
        mine = best(ours, key=lambda row: row["value"])
        if not peers:
            print(f"{self.options.name}: no ratio (ours {text(mine['value'])} {mine['unit']}; no peer ran)")
            return 0
        other = best(peers, key=lambda row: row["value"])
        value = mine["value"] / other["value"]
        self.add("ratio", value, f"of {other['who']}")
        print(f"{self.options.name}: ratio {value:.2f} (ours {text(mine['value'])} {mine['unit']}, "
              f"{other['who']} {text(other['value'])} {other['unit']})")
        return 0


def text(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def read_result(outcome):
    for line in outcome.output.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    return None


# --- benchmarks ---------------------------------------------------------------------------------------------------------------

LOW_CASES = [("eager", "float16"), ("graph", "float16"), ("compile", "float16"), ("max-autotune", "float16"),
             ("graph", "bfloat16"), ("max-autotune", "bfloat16"), ("compile", "bfloat16"), ("eager", "bfloat16")]


def low_precision(bench, batch, steps, fetch):
    low = switches.AMP if bench.smoke else switches.FLOAT16
    run = dict(steps=steps, fetch=fetch)
    tuned = [switches.FUSED_BN, switches.EXHAUSTIVE]
    ours = [bench.ours("ours float16", batch, low, *tuned, watch=True, **run)]
    if not bench.smoke:
        ours.append(bench.ours("ours bfloat16", batch, switches.BFLOAT16, *tuned, **run))
    peers = bench.peers(batch, LOW_CASES, reserve=40)
    if not bench.smoke:  # repeat: the card is now as warm as for the peers
        ours.append(bench.ours("ours float16 again", batch, low, *tuned, **run))
    return bench.ratio(ours, peers)


def resnet50_b256_amp(bench):
    """ResNet-50, batch 256, mixed precision, synthetic images."""
    return low_precision(bench, 256, 400, 20)


def resnet50_b32_amp(bench):
    """ResNet-50, batch 32, mixed precision: bound by launches in eager frameworks."""
    return low_precision(bench, 32, 2400, 100)


def resnet50_b128_fp32(bench):
    """ResNet-50, batch 128, float32 with TF32."""
    ours = [bench.ours("ours tf32", 128, switches.TF32_ON, switches.FUSED_BN, switches.EXHAUSTIVE, steps=300, watch=True)]
    peers = bench.peers(128, [(mode, "tf32") for mode in ("eager", "graph", "compile", "max-autotune")], reserve=40)
    if not bench.smoke:
        ours.append(bench.ours("ours tf32 again", 128, switches.TF32_ON, switches.FUSED_BN, switches.EXHAUSTIVE, steps=300))
    return bench.ratio(ours, peers)


def memory_b256(bench):
    """GPU memory of ResNet-50 with batch 256 in mixed precision: less is better."""
    low = switches.AMP if bench.smoke else switches.FLOAT16
    rows = [bench.ours("ours float16", 256, low, switches.FUSED_BN, steps=120, watch=True)]
    peers = []
    for mode in ("eager", "compile") if not bench.smoke else ("eager",):
        peers.append(bench.peer(256, mode, "float16" if not bench.smoke else "bfloat16", limit=200, watch=True))
    mine = [bench.add("ours", row["memory_mib"], "MiB") for row in rows if row and row.get("memory_mib")]
    others = [bench.add(row["who"], row["memory_mib"], "MiB") for row in peers if row and row.get("memory_mib")]
    if bench.smoke:
        print("memory_b256: no figure on a CPU")
        return 0 if all(rows) else 1
    return bench.ratio(mine, others, best=min)


def resnet50_jpeg(bench):
    """ResNet-50, batch 256, mixed precision, from JPEG files: decode, crop, flip, normalise, train."""
    path, root = images.photographs(bench)
    if path is None:
        print("SKIP: resnet50_jpeg needs imagenet_200.tar (any JPEG files) in --data or FLEET_SHARED_DATA")
        return SKIPPED
    low = switches.AMP if bench.smoke else switches.FLOAT16
    files = {"data.train.list": path, "data.root": root}
    ours = [bench.ours("ours float16", 256, low, switches.FUSED_BN, switches.EXHAUSTIVE, files=files, steps=300, file=JPEG, limit=150)]
    cases = [("eager", "float16"), ("compile", "float16")]
    peers = bench.peers(256, cases, "--list", path, "--root", root, "--seconds", "1" if bench.smoke else "25", reserve=60)
    return bench.ratio(ours, peers)


def cifar10_60_epochs(bench):
    """ResNet-20 on CIFAR-10 from its JPEG files, 60 epochs on one GPU, against PyTorch with the same recipe and files."""
    root = images.shared_data(bench, "cifar10_jpeg.tar.xz")
    if root is None:
        print("SKIP: cifar10_60_epochs needs cifar10_jpeg.tar.xz in --data or FLEET_SHARED_DATA")
        return SKIPPED
    while not os.path.isdir(os.path.join(root, "train")):
        root = os.path.join(root, sorted(os.listdir(root))[0])
    values = {"train.device": bench.device, "data.root": root, "data.batch_size": 128, "train.epochs": 60,
              "train.fetch_every": 390}
    if bench.smoke:
        values.update({"train.max_steps": 3, "train.fetch_every": 1, "data.batch_size": 16})
    file = job.file_of("config", "cifar10_resnet20.json")
    values.update(bench.usable(file, switches.AMP) if bench.smoke else switches.AMP)
    run = Job(bench, "cifar10", file, values, {}, min(240, bench.left()))
    if not run.ok or run.test_acc1() is None:
        print(f"cifar10_60_epochs: FAILED: ours: {run.why()}")
        return 1
    ours = bench.add("ours", float(run.test_acc1()), "acc1", seconds=run.outcome.seconds)
    script = job.file_of("tests", "bench", "peers", "cifar10_resnet20.py")
    argv = [bench.python, "-B", script, root, "--epochs", "60"]
    argv += ["--max_steps", "3", "--batch", "16"] if bench.smoke else ["--device", "cuda", "--dtype", "float16"]
    outcome = process.run(argv, max(10, bench.left()))
    bench.log(outcome.output)
    found = job.printed(outcome, r"^acc1: (\S+)$")
    if not found:
        bench.note(f"PyTorch: {outcome.why()} {outcome.last_line()}")
        return bench.ratio([ours], [])
    seconds = job.printed(outcome, r"^trained in (\S+) s$")
    peer = bench.add("PyTorch eager", float(found[1]), "acc1", seconds=outcome.seconds, training_s=seconds and float(seconds[1]))
    return bench.ratio([ours], [peer])


def steps_of_the_way(bench):
    """Gain of each optimization: plain, fused batch norm, one graph, measured algorithms; batch 256, then 32."""
    low = switches.AMP if bench.smoke else switches.FLOAT16
    stages = [("plain", [switches.NO_FUSED_BN, switches.NO_GRAPH]),
              ("fused BN", [switches.FUSED_BN, switches.NO_GRAPH]),
              ("graph", [switches.FUSED_BN]),
              ("measured algorithms", [switches.FUSED_BN, switches.EXHAUSTIVE])]
    rows = {}
    for batch, steps, fetch in ((256, 200, 20), (32, 1200, 100)):
        for name, wanted in stages:
            rows[batch, name] = bench.ours(f"b{batch} {name}", batch, low, *wanted, steps=steps, fetch=fetch, limit=60)
    last = [row for (batch, name), row in rows.items() if batch == 256 and name != "plain" and row]
    plain = rows[256, "plain"]
    return bench.ratio(last, [plain] if plain else [])


def roofline_(bench):
    """Operations and bytes of a ResNet-50 step, their least time on this card, and our time."""
    batch = 256
    lines = []
    for way in ("plain", "fused", "patterns"):
        operations, moved = roofline.totals(way)
        lines.append([way, f"{operations * batch / 1e12:.2f}", f"{moved * batch / 1e9:.1f}", f"{operations / moved:.0f}"])
    print(f"a ResNet-50 step of {batch} images of 224x224, float16 activations:")
    print(report.table(["batch norm", "10^12 operations", "GB", "operations a byte"], lines))
    if bench.smoke:
        print("roofline: no GPU here: nothing was measured")
        return 0
    outcome = process.run([bench.python, "-B", "-c", roofline.MEASURE], 90)
    peaks, how = read_result(outcome), "measured by PyTorch in this run"
    if peaks is None:
        name = bench.gpu.name() or ""
        found = [value for key, value in roofline.NOMINAL.items() if key in name]
        if not found:
            print(f"roofline: FAILED: the limits of '{name}' are neither known nor measured: {outcome.last_line()}")
            return 1
        peaks, how = found[0], "from a table: PyTorch did not measure them"
    bench.add("limits", peaks[0] / 1e12, "TFLOP/s", gb_per_s=peaks[1] / 1e9, how=how)
    ours = bench.ours("ours float16", batch, switches.FLOAT16, switches.FUSED_BN, switches.EXHAUSTIVE, steps=300)
    for way in ("plain", "fused", "patterns"):
        operations, moved = roofline.totals(way)
        at_once = roofline.bound(way, batch, *peaks)
        bench.add(f"bound {way}", batch / at_once, "images/s", step_ms=1000 * at_once,
                  computing_ms=1000 * operations * batch / peaks[0], moving_ms=1000 * moved * batch / peaks[1])
    argv = [os.path.join(bench.bin, "bench_roofline"), "--device", "cuda", "--batch", str(batch)]
    by_operation = process.run(argv, 120, bench.env)
    bench.log(by_operation.output)
    print("by kind of operation (measured one at a time, so the sum exceeds a step):")
    print(by_operation.output if by_operation.ok else by_operation.why() + ": " + by_operation.last_line())
    return bench.ratio([ours], [row for row in bench.rows if row["who"] == "bound patterns"])


def pointwise(bench):
    """ResNet-50's 1 x 1 convolutions with batch normalization around them: kernels of our own against cuDNN and passes."""
    if bench.smoke:
        print("pointwise: nothing to run on a CPU")
        return SKIPPED
    argv = [os.path.join(bench.bin, "bench_roofline"), "--device", "cuda", "--pointwise", "--batch", "256"]
    outcome = process.run(argv, max(10, bench.left()), bench.env)
    bench.log(outcome.output)
    print(outcome.output, end="")
    found = job.printed(outcome, r"^pointwise: ratio (\S+) \(ours (\S+) ms, cuDNN and passes (\S+) ms")
    if not outcome.ok or not found:
        print(f"pointwise: FAILED: {outcome.why()} {outcome.last_line()}")
        return 1
    for layer in re.finditer(r"^(layer\S+): ratio (\S+) .*: ours (\S+) us, cuDNN and passes (\S+) us, bound (\S+) us",
                             outcome.output, re.MULTILINE):
        bench.add(layer[1], float(layer[3]), "us", passes_us=float(layer[4]), bound_us=float(layer[5]), ratio=float(layer[2]))
    bench.add("ours", float(found[2]), "ms")
    bench.add("cuDNN and passes", float(found[3]), "ms")
    print(f"pointwise: ratio {found[1]} (ours {found[2]} ms, cuDNN and passes {found[3]} ms)")
    return 0


def pointwise_bounds():
    """Without a GPU: the least time of each layer on an H200 as it was measured, 4.0 TB/s and 890 TFLOP/s."""
    rows = roofline.pointwise(256, 4.0e12, 890e12)
    print("ResNet-50's convolutions of 1 x 1, batch 256, 16-bit, forward, on an H200 with 4.0 TB/s and 890 TFLOP/s:")
    print(report.table(["layer", "MB", "us", "MB with passes", "us with passes"],
                       [[row[0]] + [f"{value:.1f}" for value in row[1:]] for row in rows]))
    total = [sum(row[i] for row in rows) / 1e3 for i in range(1, 5)]
    print(f"all: {total[0]:.2f} GB, {total[1]:.2f} ms at least; with passes {total[2]:.2f} GB, {total[3]:.2f} ms")


def trace_cost_(bench):
    """The speed of ResNet-50 within `fleetrun trace`, against its speed without."""
    return trace_cost.trace_cost(bench, RESNET50, SYNTHETIC)


BENCHES = {
    "resnet50_b256_amp": resnet50_b256_amp,
    "resnet50_b32_amp": resnet50_b32_amp,
    "resnet50_b128_fp32": resnet50_b128_fp32,
    "memory_b256": memory_b256,
    "resnet50_jpeg": resnet50_jpeg,
    "cifar10_60_epochs": cifar10_60_epochs,
    "steps": steps_of_the_way,
    "roofline": roofline_,
    "pointwise": pointwise,
    "trace_cost": trace_cost_,
    "families": families.families,
}


def main():
    parser = argparse.ArgumentParser(prog="gpu_bench.sh", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=list(BENCHES), help="benchmark to run (default: list them)")
    parser.add_argument("networks", nargs="*", help="for families: the networks (default: all of its list)")
    parser.add_argument("--next", action="store_true", help="for families: begin with networks that were not measured yet")
    parser.add_argument("--output", default="output/gpu_bench", help="folder for NAME.json, log.txt and the jobs' output")
    parser.add_argument("--data", help="folder with the archives of real images (default: FLEET_SHARED_DATA)")
    parser.add_argument("--limit", type=float, default=530, help="time limit of the whole benchmark in seconds")
    parser.add_argument("--smoke", action="store_true", help="run a tiny version on the CPU, to test the benchmark")
    options = parser.parse_args()
    if options.networks and options.name != "families":
        parser.error(f"{options.name} takes no networks")
    if options.name is None:
        for name, run in BENCHES.items():
            print(f"{name:20} {run.__doc__}")
        return 0
    if not options.smoke:
        count, why = machine.cuda_device_count()
        if count == 0 and options.name == "roofline":
            print(f"no GPU: {why}")
            options.smoke = True
        elif count == 0:
            if options.name == "pointwise":
                pointwise_bounds()
            print(f"SKIP: gpu_bench needs a GPU: {why}")
            return SKIPPED
    bench = Bench(options)
    about = bench.describe()
    print(f"gpu_bench {options.name}: {about['gpu'] or 'CPU (smoke)'}, driver {about.get('driver')}", flush=True)
    if bench.gpu:
        print(f"before: {bench.gpu.used_mib()} MiB in use, {bench.gpu.clock_mhz()} MHz", flush=True)
    for line in bench.libraries:
        print(f"  {line}", flush=True)
    code = BENCHES[options.name](bench)
    if bench.rows:
        # The result stays the last line: the table goes before it, into the log and the file.
        rows = [[row["who"], text(row["value"]), row["unit"], text(row.get("step_ms", "")), text(row.get("memory_mib", ""))]
                for row in bench.rows]
        bench.log("\n" + report.table(["who", "value", "unit", "ms a step", "MiB"], rows))
    bench.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
