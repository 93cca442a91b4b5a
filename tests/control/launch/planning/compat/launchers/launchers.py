#!/usr/bin/env python3
"""Compares the options of the tables with those of the launchers' own parsers.

    launchers.py LAUNCHER [PYTHON]    accelerate, torchrun: PYTHON (or FLEET_ACCELERATE_PYTHON, FLEET_PYTHON, python3) has it; 77: it has not
    launchers.py LAUNCHER FILE        any launcher: FILE is its source, in which parse_args() makes the parser
"""

import argparse
import ast
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PARSERS = {
    "accelerate": "from accelerate.commands.launch import launch_command_parser as parser; from accelerate import __version__ as version",
    "torchrun": "from torch.distributed.run import get_args_parser as parser; from torch import __version__ as version",
}
SHOW = "; print(version.split('+')[0]); print(*[flag for action in parser()._actions for flag in action.option_strings])"
ELSEWHERE = {"torchrun": {"--use-env", "--use_env"}}  # torch.distributed.launch has it


def table(launcher):
    flags, version = set(), ""
    with open(os.path.join(HERE, launcher + ".txt")) as file:
        for line in file:
            version = version or line.partition("version: ")[2].strip()
            if line.startswith("-"):
                flags |= set(re.match(r"((?:--?[a-zA-Z][\w-]*\s+)+)", line + " ")[1].split())
    return flags - ELSEWHERE.get(launcher, set()), version


def installed(launcher, python):
    done = subprocess.run([python, "-c", PARSERS[launcher] + SHOW], capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    if done.returncode != 0:
        print(f"SKIP: '{python}' has no {launcher}")
        sys.exit(77)
    version, flags = done.stdout.strip().splitlines()[-2:]
    return set(flags.split()), version


def of_source(path):
    """Runs parse_args() of a source file up to the point where it would parse."""
    def stop(parser, *_, **__):
        raise StopIteration(parser)

    class Anything:
        def __getattr__(self, name):
            return Anything()

        def __call__(self, *_, **__):
            return argparse.Action if _ or __ else ""

    with open(path) as file:
        tree = ast.parse(file.read())
    wanted = [node for node in tree.body if isinstance(node, ast.FunctionDef) and (node.name == "parse_args" or node.name.startswith("make_"))]
    names = {"argparse": argparse, "ArgumentParser": argparse.ArgumentParser, "REMAINDER": argparse.REMAINDER, "strtobool": str, "os": os}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names and not hasattr(__builtins__, node.id):
            names[node.id] = Anything()
    argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_known_args = stop
    exec(compile(ast.Module(wanted, []), path, "exec"), names)
    try:
        names["parse_args"]()
    except StopIteration as stopped:
        return {flag for action in stopped.value._actions for flag in action.option_strings}
    sys.exit("parse_args() does not parse")


def main(launcher, source=""):
    variable = "FLEET_ACCELERATE_PYTHON" if launcher == "accelerate" else "FLEET_PYTHON"
    source = source or os.environ.get(variable, "python3")
    flags, version = table(launcher)
    real = of_source(source) if source.endswith(".py") else None
    if real is None:
        real, found = installed(launcher, source)
        if found.split(".")[:2] != version.split(".")[:2]:
            print(f"SKIP: {launcher} is {found}, not {version}")
            return 77
    print(f"{launcher} {version}: {len(real)} flags; missing: {sorted(real - flags)}; too many: {sorted(flags - real)}")
    return real != flags


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
