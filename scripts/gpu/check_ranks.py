"""The parts of gpu_check with several ranks on one GPU."""
import os
import signal
import time
import uuid

import job
import process
from parts import SMALL, need, small

# Several ranks on one GPU: NCCL refuses that within a host, but treats ranks with different NCCL_HOSTID as different hosts.
# fleetrun assigns a GPU to one rank only. So hide the GPUs from it, and let the ranks take the first one themselves.
RANK = 'export CUDA_VISIBLE_DEVICES=$CHECK_GPU FLAGS_selected_gpus=0 NCCL_HOSTID=check-$PADDLE_TRAINER_ID; exec "$@"'


def ranks_command(context, name, ranks, values):
    folder = os.path.join(context.folder, "jobs", name)
    os.makedirs(folder, exist_ok=True)
    values = {**values, "train.output": folder}
    return folder, [os.path.join(context.bin, "fleetrun"), f"--nproc_per_node={ranks}", f"--log_dir={folder}/log", "--grace=3",
                    "sh", "-c", RANK, "rank", os.path.join(context.bin, "fleet-worker"), SMALL] + job.settings(values)


def ranks_environment(context):
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return {**context.env, "CUDA_VISIBLE_DEVICES": "", "CHECK_GPU": gpu, "NCCL_SOCKET_IFNAME": os.environ.get("NCCL_SOCKET_IFNAME", "lo"), "OMP_NUM_THREADS": "1"}


def used_nccl(context, folder, output):
    log = output
    for name in sorted(os.listdir(os.path.join(folder, "log"))) if os.path.isdir(os.path.join(folder, "log")) else ():
        with open(os.path.join(folder, "log", name), errors="replace") as file:
            log += file.read()
    context.log(log)
    need(context.smoke or "communicate through nccl" in log, "the ranks do not communicate through NCCL")


def run_ranks(context, name, ranks, values, limit=60):
    """A job that has ended well, and used NCCL if it has several ranks."""
    folder, argv = ranks_command(context, name, ranks, values)
    outcome = process.run(argv, context.allow(limit), ranks_environment(context), folder)
    need(outcome.ok, f"{name}: {outcome.why()}: {outcome.last_line()}")
    if ranks > 1:
        used_nccl(context, folder, outcome.output)
    return job.finished(folder)


def check_ranks(context):
    """1, 2 and 4 ranks with the same global batch reach the same weights, over NCCL on one GPU."""
    weights = {}
    for ranks in (1, 2, 4):
        values = small("lenet", context.device, 20, values={"data.batch_size": 64 // ranks})
        weights[ranks] = run_ranks(context, f"ranks_{ranks}", ranks, values).weights()
    apart = {ranks: job.distance(weights[1], weights[ranks]) for ranks in (2, 4)}
    allowed = 2e-3 if context.smoke else 1e-4  # a CPU without AVX-512: 6.2e-4 was measured
    need(max(apart.values()) <= allowed, f"weights after 20 steps differ from one rank's: {apart}")
    return ", ".join(f"{ranks} ranks: {value:.0e} from one" for ranks, value in apart.items())


def check_pipeline(context):
    """A pipeline of 2 and 3 stages on one GPU, in each schedule, has the losses of one rank that merges the same gradients."""
    merge = {"data.batch_size": 16, "strategy.gradient_merge": True, "strategy.gradient_merge_configs.k_steps": 4}
    one = run_ranks(context, "pipeline_1", 1, small("resnet20", context.device, 40, values=merge)).losses()
    means = [sum(one[4 * step + part] for part in range(4)) / 4 for step in range(10)]
    found = []
    for stages, mode in ((2, "1F1B"), (3, "1F1B")) if context.smoke else ((2, "1F1B"), (2, "F-then-B"), (2, "Eager1F1B"), (3, "1F1B")):
        values = {"data.batch_size": 64, "strategy.pipeline": True, "strategy.pipeline_configs.accumulate_steps": 4,
                  "strategy.pipeline_configs.schedule_mode": mode}
        name = f"pipeline_{stages}_{mode}"
        losses = run_ranks(context, name, stages, small("resnet20", context.device, 10, values=values)).losses()
        off = max(abs(losses[step] - means[step]) / means[step] for step in range(10))
        need(off <= 1e-2, f"{name}: losses differ by {off:.1e} from one rank's")  # resnet20 is chaotic: see TOLERANCE
        found.append(f"{mode} of {stages} stages {off:.0e}")
    return "largest differences of the loss: " + ", ".join(found)


def processes_with(mark):
    """{pid: environment} of the processes with the mark in their environment."""
    found = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        if mark.encode() in variables:
            found[int(pid)] = dict(item.decode(errors="replace").split("=", 1) for item in variables if b"=" in item)
    return found


def check_kill(context):
    """Kills one of two ranks: the job ends within 5 s plus the grace time, names the rank, and leaves nothing behind."""
    mark = f"FLEET_CHECK_MARK={uuid.uuid4()}"
    values = small("resnet20", context.device, 0, values={"train.epochs": 100000, "train.fetch_every": 1})
    folder, argv = ranks_command(context, "kill", 2, values)
    killed = {}

    def on_line(line):
        if "step20 cost" not in line or killed:
            return None
        for pid, variables in processes_with(mark).items():
            try:
                ours = os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "fleet-worker"
            except OSError:
                continue
            if ours and variables.get("PADDLE_TRAINER_ID") == "1":
                killed[pid] = time.monotonic()
                os.kill(pid, signal.SIGKILL)
        return None

    key, value = mark.split("=")
    outcome = process.run(argv, context.allow(50), {**ranks_environment(context), key: value}, folder, on_line=on_line)
    ended = time.monotonic()
    used_nccl(context, folder, outcome.output)
    left = processes_with(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    need(killed, f"rank 1 was not found at step 20: {outcome.why()}: {outcome.last_line()}")
    seconds = ended - min(killed.values())
    need(not outcome.timed_out, "the job continued without rank 1")
    need(outcome.code == 128 + signal.SIGKILL, f"fleetrun ended with {outcome.code}, not 137")
    need("rank=[1]" in outcome.output, "the verdict does not name rank 1")
    need(seconds <= 5 + 3, f"it took {seconds:.1f} s to end")
    need(not left, f"{len(left)} processes were left behind")
    return f"ended {seconds:.1f} s after the kill, verdict rank 1, nothing left"
