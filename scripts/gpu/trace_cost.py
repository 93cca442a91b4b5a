"""The cost of `fleetrun trace`: the speed of one job within a trace and around it."""
import os
import statistics
import subprocess
import time

import job
import process
import switches


def points(folder):
    """(step, time) of each fetched step so far."""
    return [(event["step"], event["time"]) for event in job.read_events(os.path.join(folder, "metrics.jsonl")) if event["event"] == "train"]


def speeds(found, batch, wanted):
    """Images per second between fetched steps that are both wanted."""
    return [batch * (b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(found, found[1:]) if wanted(a[0]) and wanted(b[0]) and b[1] > a[1]]


def start(bench, folder, file, values, environment):
    """A job under fleetrun, whose agent records the trace."""
    chosen = ["--nproc_per_node=1"] if bench.smoke else ["--gpus=0"]
    argv = [os.path.join(bench.bin, "fleetrun")] + chosen + [f"--log_dir={folder}/log", "--job_id=trace_cost", file] + job.settings(values)
    with open(os.path.join(folder, "output.txt"), "w") as output:
        return subprocess.Popen(argv, env={**os.environ, **bench.env, **environment}, stdout=output, stderr=subprocess.STDOUT)


def measure(bench, file, environment):
    """Our speed outside of a trace and within it, in images per second; None (and a note) if something failed."""
    folder = os.path.join(bench.folder, "jobs", "trace_cost")
    os.makedirs(folder, exist_ok=True)
    batch, fetch, before, traced = (4, 1, 4, 10) if bench.smoke else (256, 10, 200, 200)
    values = {"train.device": bench.device, "data.batch_size": batch, "train.fetch_every": fetch, "train.output": folder,
              "train.max_steps": before + 3 * traced, **({} if bench.smoke else {**switches.FLOAT16, **switches.FUSED_BN})}
    if bench.smoke:
        values.update({"data.image.height": 64, "data.image.width": 64})
    running = start(bench, folder, file, values, environment)
    try:
        while running.poll() is None and (not points(folder) or points(folder)[-1][0] < before) and bench.left() > 30:
            time.sleep(0.2)
        first = points(folder)[-1][0] + fetch if points(folder) else 0  # about the first step of the trace
        trace = process.run([os.path.join(bench.bin, "fleetrun"), "trace", "trace_cost", f"--steps={traced}", "-o", os.path.join(folder, "trace")],
                            max(10, bench.left() - 20), bench.env)
        bench.log(trace.output)
        running.wait(max(10, bench.left()))
    except subprocess.TimeoutExpired:
        bench.note("the job did not end in time")
    finally:
        running.kill()
        running.wait()
    if not trace.ok:
        bench.note(f"fleetrun trace: {trace.why()} {trace.last_line()}")
        return None
    last = first + traced
    found = points(folder)
    outside = speeds(found, batch, lambda step: 3 * fetch <= step < first or step > last + 5 * fetch)
    inside = speeds(found, batch, lambda step: first + fetch <= step <= last - fetch)
    if not outside or not inside:
        bench.note(f"no fetched steps outside of or within steps {first} to {last}")
        return None
    return statistics.median(outside), statistics.median(inside)


def trace_cost(bench, file, environment):
    found = measure(bench, file, environment)
    if found is None:
        print("trace_cost: FAILED")
        return 1
    outside, inside = found
    bench.add("without a trace", outside, "images/s")
    bench.add("within a trace", inside, "images/s")
    print(f"trace_cost: ratio {inside / outside:.3f} (ours {inside:.0f} images/s, without a trace {outside:.0f} images/s)")
    return 0
