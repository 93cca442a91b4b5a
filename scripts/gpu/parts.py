"""What the parts of gpu_check share: small jobs, their settings, and how a part fails."""
import job
import switches
from job import Job

LENET = {"model.name": "lenet", "data.image.channels": 1, "data.image.height": 28, "data.image.width": 28}
RESNET20 = {"model.name": "resnet20", "data.image.channels": 3, "data.image.height": 32, "data.image.width": 32}
NETS = {"lenet": LENET, "resnet20": RESNET20}
SMALL = job.file_of("tests", "bench", "jobs", "small.json")


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Failed(what)


def small(net, device, steps=20, **more):
    values = {**NETS[net], "train.device": device, "train.max_steps": steps}
    values.update(more.pop("values", {}))
    return values


def train(context, name, net, device, values=None, steps=20, limit=90, environment=None):
    values = small(net, device, steps, values=known(context, values or {}))
    run = Job(context, name, SMALL, values, environment or {}, limit)
    need(run.ok, f"{name}: {run.why()}")
    need(run.device != "cpu", f"{name} was to run on the GPU: {run.outcome.output[:200]}")
    need(len(run.losses()) == steps, f"{name}: {len(run.losses())} losses in metrics.jsonl, not {steps}")
    return run


def known(context, values):
    """The settings; on the CPU none, unless this build accepts them."""
    return values if not context.smoke or not job.accepts(context, SMALL, small("lenet", "cpu", values=values)) else {}


def nets(context):
    return ["lenet"] if context.smoke else list(NETS)


def low_types(context):
    """(name, settings) of mixed precision; on the CPU its own low type, if this build and this CPU support it."""
    if not context.smoke:
        return [("float16", switches.FLOAT16), ("bfloat16", switches.BFLOAT16)]
    why = job.accepts(context, SMALL, small("lenet", "cpu", values=switches.AMP))
    return [] if why else [("amp", switches.AMP)]


def worst_loss(a, b, steps=None):
    return max(abs(a[step] - b[step]) / max(abs(a[step]), 1e-6) for step in a if steps is None or step < steps)


# Largest differences of losses and weights in 20 steps of float32, and of the losses in the first steps. Batch normalization makes
# resnet20 chaotic: between oneDNN with AVX2 and with AVX-512, 6e-3 and 3e-2 were measured.
TOLERANCE = {"lenet": (1e-3, 1e-3), "resnet20": (3e-2, 1e-1)}
FIRST_STEPS, FIRST_TOLERANCE = 3, 1e-4
