"""Checks that everything works on a GPU: see scripts/gpu_check.sh."""
import argparse
import json
import os
import re
import sys
import time

import check_ranks
import gtest
import job
import machine
import process
import report
import switches
from job import Job
from parts import FIRST_STEPS, FIRST_TOLERANCE, SMALL, TOLERANCE, Failed, Skipped, low_types, need, nets, small, train, worst_loss

SKIPPED = 77


# --- parts: each returns one line of detail, or raises Failed or Skipped -----------------------------------------------------


def check_training(context):
    """Small nets train on the GPU like on the CPU: float32 without TF32, then both low types against it."""
    found = []
    for net in nets(context):
        cpu = train(context, f"training_{net}_cpu", net, "cpu")
        gpu = train(context, f"training_{net}_gpu", net, context.device, switches.TF32_OFF)
        first, off = worst_loss(cpu.losses(), gpu.losses(), FIRST_STEPS), worst_loss(cpu.losses(), gpu.losses())
        apart = job.distance(cpu.weights(), gpu.weights())
        losses, weights = TOLERANCE[net]
        need(first <= FIRST_TOLERANCE, f"{net} float32: the first losses differ by {first:.1e}, more than {FIRST_TOLERANCE}")
        need(off <= losses, f"{net} float32: losses differ by {off:.1e}, more than {losses}")
        need(apart <= weights, f"{net} float32: weights differ by {apart:.1e} after 20 steps, more than {weights}")
        found.append(f"{net} float32 {off:.0e}")
        for kind, values in low_types(context):
            low = train(context, f"training_{net}_{kind}", net, context.device, values=values)
            off = worst_loss(cpu.losses(), low.losses())
            need(off <= 0.05, f"{net} {kind}: losses differ from float32's by {off:.1e}, more than 5 %")
            found.append(f"{kind} {off:.0e}")
    return "largest differences of the loss: " + ", ".join(found)


def same_bits(context, name, net, first, second):
    """Runs twice, with two sets of settings; the final weights must be bit-identical."""
    files = []
    for number, values in enumerate((first, second)):
        files.append(train(context, f"{name}_{number}", net, context.device, {**switches.DETERMINISTIC, **values}).weights_file())
    with open(files[0], "rb") as a, open(files[1], "rb") as b:
        need(a.read() == b.read(), f"{name}: the weights after 20 steps are not bit-identical")


def check_repeat(context):
    """Deterministic mode: two equal runs give bit-identical weights."""
    for net in nets(context):
        for kind, values in [("float32", {})] + low_types(context)[:1]:
            same_bits(context, f"repeat_{net}_{kind}", net, values, values)
    return ", ".join(nets(context)) + ": bit-identical twice"


def check_graph(context):
    """One CUDA graph per step against plain launches, in deterministic mode: bit-identical."""
    if context.smoke:
        raise Skipped("the CPU has no graphs")
    for net in nets(context):
        for kind, values in (("float32", {}), ("amp", switches.FLOAT16)):
            same_bits(context, f"graph_{net}_{kind}", net, values, {**values, **switches.NO_GRAPH})
    return "lenet and resnet20, float32 and mixed: bit-identical with and without graphs"


def check_loss_scaling(context):
    """Overflows: a far too large static scale trains nothing; a dynamic one decreases until training works."""
    if context.smoke:
        raise Skipped("the CPU's low type needs no loss scaling")
    config = "strategy.amp_configs."
    static = {**switches.FLOAT16, config + "use_dynamic_loss_scaling": False, config + "init_loss_scaling": 2.0**60}
    one = train(context, "scaling_static_1", "lenet", context.device, values=static, steps=1)
    five = train(context, "scaling_static_5", "lenet", context.device, values=static, steps=5)
    need(job.distance(one.weights(), five.weights()) == 0, "static scale 2^60: weights moved, though every gradient overflows")
    dynamic = {**switches.FLOAT16, config + "init_loss_scaling": 2.0**40, config + "decr_every_n_nan_or_inf": 1,
               config + "decr_ratio": 0.5}
    # One batch again and again: of the others, made-up images with random labels, there is nothing to learn.
    one_batch = {"FLAGS_reader_queue_speed_test_mode": "1"}
    run = train(context, "scaling_dynamic", "lenet", context.device, values=dynamic, steps=80, environment=one_batch)
    losses = run.losses()
    need(all(loss == loss and loss < 100 for loss in losses.values()), "dynamic scale: a loss is not finite")
    early, late = losses[0], sum(losses[step] for step in range(75, 80)) / 5
    need(late < early, f"dynamic scale from 2^40: the loss did not fall ({early:.3f} to {late:.3f}): nothing was trained")
    return f"static 2^60: no weight moved; dynamic from 2^40: loss {early:.2f} to {late:.2f}"


def check_memory(context):
    """Memory stays within its limit, an out-of-memory error names a batch that fits, and memory does not grow between steps."""
    if context.smoke:
        raise Skipped("needs a GPU")
    most = 262144
    values = small("resnet20", context.device, 3, values={**switches.LITTLE_MEMORY, "data.batch_size": most, "data.train.samples": most})
    large = Job(context, "memory_large", SMALL, values, {}, 90)
    need(not large.ok and large.outcome.code > 0, f"a batch of {most} in a tenth of the memory: {large.why() or 'ran'}")
    text = large.outcome.last_line()
    fits = re.search(r"data\.batch_size=(\d+) would fit", text)
    need(fits, f"the out-of-memory message names no batch that fits: {text}")
    fitting = Job(context, "memory_fitting", SMALL, {**values, "data.batch_size": int(fits[1])}, {}, 90, watch_memory=True)
    need(fitting.ok, f"the batch of {fits[1]} that should fit: {fitting.why()}")
    short = Job(context, "memory_20", SMALL, small("resnet20", context.device, 20), {}, 90, watch_memory=True)
    long = Job(context, "memory_400", SMALL, small("resnet20", context.device, 400), {}, 120, watch_memory=True)
    need(short.ok and long.ok, f"{short.why()} {long.why()}")
    if short.memory_mib is None or long.memory_mib is None:
        return "the message is right; NVML cannot tell the memory in use here"
    need(long.memory_mib <= short.memory_mib + 64, f"{short.memory_mib:.0f} MiB in 20 steps, {long.memory_mib:.0f} in 400")
    return f"{short.memory_mib:.0f} MiB in 20 steps, {long.memory_mib:.0f} MiB in 400; out of memory: {text[:120]}"


def check_lines(context):
    """fleetrun --gpus=0 with the ImageNet job prints Paddle's usual lines, and names the GPU."""
    values = {"data.source": "synthetic", "data.batch_size": 8, "data.train.samples": 64, "data.image.height": 64,
              "data.image.width": 64, "train.max_steps": 4, "train.fetch_every": 1, "train.evaluate_every": 0,
              "checkpoint.resume": "no", "checkpoint.every_epochs": 0, "checkpoint.at_end": False}
    folder = os.path.join(context.folder, "jobs", "lines")
    os.makedirs(folder, exist_ok=True)
    chosen = ["--nproc_per_node=1"] if context.smoke else ["--gpus=0"]
    values.update({"train.output": folder, **({"train.device": "cpu"} if context.smoke else {})})
    argv = [os.path.join(context.bin, "fleetrun")] + chosen + [f"--log_dir={folder}/log"]
    argv += [job.file_of("config", "resnet50_imagenet.json")] + job.settings(values)
    outcome = process.run(argv, context.allow(60), context.env, folder)
    context.log(outcome.output)
    need(outcome.ok, f"{outcome.why()}: {outcome.last_line()}")
    for pattern in (r"worker_index: 0, step3 cost = \d+\.\d+, speed: \d+\.\d+", r"\[Epoch 0, batch 3\] loss: \d+\.\d+, acc1: "):
        need(job.printed(outcome, pattern), f"no line like '{pattern}'")
    if context.smoke:
        return "the lines of step 3 are there"
    need("launch train in GPU mode" in outcome.output, "fleetrun does not say 'launch train in GPU mode'")
    need(not re.search("the CPU is used|runs on the CPU", outcome.output), "it ran on the CPU")
    line = job.printed(outcome, r"^.*[Cc]ompute [Cc]apability.*$")
    need(line, "no line tells the device, its compute capability and cuDNN's version")
    return line[0].strip()[:160]


# Name: (function, time limit in seconds), in the order of execution.
PARTS = {
    "training": (check_training, 150),
    "graph": (check_graph, 90),
    "repeat": (check_repeat, 90),
    "loss_scaling": (check_loss_scaling, 60),
    "ranks": (check_ranks.check_ranks, 90),
    "pipeline": (check_ranks.check_pipeline, 90),
    "kill": (check_ranks.check_kill, 60),
    "memory": (check_memory, 90),
    "lines": (check_lines, 60),
}


def test_programs(folder):
    """{name: path} of the tests labelled gpu."""
    listed = os.path.join(folder, "gpu_tests.txt")
    names = open(listed).read().split() if os.path.exists(listed) else []
    return {name.removesuffix("_tests"): os.path.join(folder, name) for name in names}


def run_part(context, name, programs, limit):
    """Returns {"part", "result": ok, failed or skipped, "seconds", "detail", ...}. Never raises."""
    begun = time.monotonic()
    context.end = begun + limit
    entry = {"part": name}
    context.log(f"\n=== {name}")
    try:
        if name in programs:
            run = gtest.Run(programs[name], context.env, limit, log=context.log)
            only_skips = run.ok and run.count("skipped") == len(run.results)
            entry.update(result="skipped" if only_skips else "ok" if run.ok else "failed", detail=run.summary())
            entry["tests"] = {test: {"result": status, "detail": detail}
                              for test, (status, detail) in run.results.items() if status != "ok"}
        else:
            entry.update(result="ok", detail=PARTS[name][0](context))
    except Failed as failure:
        entry.update(result="failed", detail=str(failure))
    except Skipped as skip:
        entry.update(result="skipped", detail=str(skip))
    except Exception as error:  # a bug in one part must not hide the others
        import traceback
        context.log(traceback.format_exc())
        entry.update(result="failed", detail=f"{type(error).__name__}: {error}")
    entry["seconds"] = round(time.monotonic() - begun, 1)
    context.log(f"=== {name}: {entry['result']}: {entry['detail']}")
    return entry


def main():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="parts to run (default: all)")
    parser.add_argument("--list", action="store_true", help="list the parts and exit")
    parser.add_argument("--output", default="output/gpu_check", help="folder for gpu_check.json, log.txt and the jobs' output")
    parser.add_argument("--limit", type=float, default=470, help="time limit of all parts together in seconds")
    parser.add_argument("--smoke", action="store_true", help="run on the CPU, to test the checks themselves")
    options = parser.parse_args()
    programs = test_programs(machine.program_folder())
    known = list(programs) + list(PARTS)
    if options.list:
        for name in known:
            print(f"{name:24} {PARTS[name][0].__doc__ if name in PARTS else 'the tests of ' + name + '_tests'}")
        return 0
    unknown = [name for name in options.parts if name not in known]
    if unknown:
        parser.error(f"unknown part '{unknown[0]}'; use one of: {', '.join(known)}")
    if not options.smoke:
        count, why = machine.cuda_device_count()
        if count == 0:
            print(f"SKIP: gpu_check needs a GPU: {why}")
            return SKIPPED
    context = job.Context(options.output, options.smoke)
    by_default = list(PARTS) if options.smoke else known  # GPU test programs would skip everything
    chosen = [name for name in known if name in options.parts] if options.parts else by_default
    about = context.describe()
    print(f"gpu_check: {about['gpu'] or 'CPU (smoke)'}, driver {about.get('driver')}, programs of {about['programs']}", flush=True)
    for line in context.libraries:
        print(f"  {line}", flush=True)
    results = []
    for name in chosen:
        left = options.limit - (time.monotonic() - context.begun)
        if left < 5:
            results.append({"part": name, "result": "failed", "detail": "no time left", "seconds": 0})
        else:
            # A test program may use half of the remaining time, so that a hung one leaves time for the others.
            limit = left * (0.5 if len(chosen) > 1 else 1) if name in programs else min(left, PARTS[name][1] * context.patience)
            results.append(run_part(context, name, programs, limit))
        print(f"{results[-1]['result']:8} {name} ({results[-1]['seconds']} s): {results[-1]['detail']}", flush=True)
        report.write_json(context.folder, "gpu_check.json", {**about, "parts": results})  # in case the next part crashes this process
    print()
    print(report.table(["part", "result", "s", "detail"],
                       [[entry["part"], entry["result"], entry["seconds"], entry["detail"][:110]] for entry in results]))
    context.close()
    failed = [entry["part"] for entry in results if entry["result"] == "failed"]
    print(f"\ngpu_check: {len(results) - len(failed)} of {len(results)} parts without failure"
          + (f"; FAILED: {', '.join(failed)}" if failed else "") + f"; {os.path.join(context.folder, 'gpu_check.json')}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
