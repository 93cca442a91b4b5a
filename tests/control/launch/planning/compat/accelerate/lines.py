#!/usr/bin/env python3
"""What a real accelerate makes of the option sets of lines.txt.

    lines.py golden [PYTHON]    writes golden.json with the accelerate of PYTHON (or FLEET_ACCELERATE_PYTHON, or python3)
    lines.py check [PYTHON]     compares golden.json with it; 77: skipped, because PYTHON has none

Nothing starts: what accelerate hands to torchrun, or to a process, is recorded instead. Deepspeed and hardware for fp8 count as installed.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Of torchrun's arguments, those that accelerate sets.
FIELDS = ("nnodes", "nproc_per_node", "node_rank", "master_addr", "master_port", "rdzv_endpoint", "rdzv_backend", "max_restarts", "role")


def option_sets():
    with open(os.path.join(HERE, "lines.txt")) as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


class Recorded(Exception):
    pass


def record(launch, parser, run, words):
    before = dict(os.environ)
    seen = {}

    def variables(environment):
        return {key: value for key, value in sorted(environment.items()) if before.get(key) != value}

    def torchrun(args):
        seen.update(starts="torchrun", variables=variables(os.environ), torchrun={key: getattr(args, key) for key in FIELDS})
        raise Recorded

    def process(command, env):
        seen.update(starts=os.path.basename(command[0]), variables=variables(env))
        raise Recorded

    run.run = torchrun
    launch.subprocess.Popen = process
    try:
        launch.launch_command(parser.parse_args(words + ["train.py"]))
    except Recorded:
        pass
    except (Exception, SystemExit) as error:
        seen = {"starts": "refused", "error": type(error).__name__}
    os.environ.clear()
    os.environ.update(before)
    return seen


def record_all():
    """Runs in the Python that has accelerate, with nothing of the user's."""
    import types

    import torch.distributed.run as run
    from accelerate import __version__
    from accelerate.commands import launch
    from accelerate.utils import launch as utils

    runner = types.ModuleType("deepspeed.launcher.runner")
    runner.DEEPSPEED_ENVIRONMENT_NAME = "/dev/null"
    for name in ("deepspeed", "deepspeed.launcher"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["deepspeed.launcher.runner"] = runner
    launch.is_deepspeed_available = lambda: True
    utils.is_fp8_available = lambda: True
    utils.is_port_in_use = lambda port: False
    utils.get_free_port = lambda: 0
    parser = launch.launch_command_parser()
    for key in [key for key in os.environ if key.startswith(("ACCELERATE", "OMP_", "KMP_", "MASTER_", "PYTHONPATH"))]:
        del os.environ[key]
    sets = []
    for line in option_sets():
        words = shlex.split(line)
        default = os.path.join(os.environ["HF_HOME"], "accelerate", "default_config.yaml")
        if words[0].startswith("default:"):
            os.makedirs(os.path.dirname(default), exist_ok=True)
            os.link(words.pop(0).partition(":")[2], default)
        sets.append({"line": line, **record(launch, parser, run, words)})
        if os.path.exists(default):
            os.unlink(default)
    json.dump({"accelerate": __version__, "sets": sets}, sys.stdout)


def recorded_by(python):
    with tempfile.TemporaryDirectory() as folder:
        for name in os.listdir(os.path.join(HERE, "configs")):
            with open(os.path.join(HERE, "configs", name)) as source, open(os.path.join(folder, name), "w") as copy:
                copy.write(source.read())
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "HF_HOME": os.path.join(folder, "hf"), "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run([python, os.path.abspath(__file__), "record"], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.loads(done.stdout.splitlines()[-1].replace(os.path.realpath(folder), "FOLDER"))


def main(what, python=os.environ.get("FLEET_ACCELERATE_PYTHON", "python3")):
    if what == "record":
        return record_all()
    if subprocess.run([python, "-c", "import accelerate, torch"], capture_output=True).returncode != 0:
        print(f"SKIP: no accelerate for '{python}'; FLEET_ACCELERATE_PYTHON names a python that has it")
        return 77
    got, path = recorded_by(python), os.path.join(HERE, "golden.json")
    if what == "golden":
        with open(path, "w") as file:
            sets = ",\n".join(json.dumps(each) for each in got["sets"])
            file.write('{"accelerate": "%s", "sets": [\n%s\n]}\n' % (got["accelerate"], sets))
        return 0
    with open(path) as file:
        golden = json.load(file)
    if got["accelerate"].split(".")[:2] != golden["accelerate"].split(".")[:2]:
        print(f"SKIP: accelerate is {got['accelerate']}, not {golden['accelerate']}")
        return 77
    bad = [each["line"] for each, real in zip(golden["sets"], got["sets"]) if each != real]
    print("\n".join(["differs: " + line for line in bad] + [f"{len(got['sets'])} option sets of accelerate {got['accelerate']}"]))
    return 1 if bad or len(golden["sets"]) != len(got["sets"]) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
