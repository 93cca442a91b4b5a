"""Benchmarks that compare processes: each prints a line "name value name value"."""
import os
import subprocess

PEERS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(PEERS, "..", "..", "..")
TORCH_PYTHON = os.environ.get("FLEET_TORCH_PYTHON") or os.environ.get("FLEET_PYTHON") or "/usr/bin/python3"


def program(name):
    return os.path.join(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"), name)


def peer(name):
    """The command of a program of this folder."""
    return [TORCH_PYTHON, os.path.join(PEERS, name)]


def fields(command, threads=1):
    """Of the last line; a text if it says why there is none."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    words = (ended.stdout.splitlines() or [""])[-1].split()
    if ended.returncode != 0 or len(words) % 2 or not words or words[0] == "SKIP:":
        return ended.stdout.strip() or (ended.stderr.strip().splitlines() or ["no output"])[-1]
    return dict(zip(words[::2], words[1::2]))
