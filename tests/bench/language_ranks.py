#!/usr/bin/env python3
"""Two ranks over shared memory, one thread each, against one rank with two threads: tokens a second of a language model's training with
merged gradients, the same global batch, in turns. A ratio above 1 is in favour of two ranks. Needs two idle cores.

Usage: language_ranks.py [--rounds=N] [--updates=N] [--accumulate=N] [--layers=N]
"""
# Builds: fleetrun fleet-worker
import argparse
import array
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
LENGTH, ROWS = 256, 4  # tokens of a row; rows of a step of all ranks together
parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=5, help="pairs of runs")
parser.add_argument("--updates", type=int, default=5, help="updates of a run; the first one is not timed")
parser.add_argument("--accumulate", type=int, default=4, help="steps of an update")
parser.add_argument("--layers", type=int, default=30, help="of a llama with the sizes of SmolLM2-135M")
options = parser.parse_args()


def run(folder, ranks):
    """Tokens a second, and the losses."""
    output = os.path.join(folder, f"of_{ranks}")
    job = {
        "task": "causal_lm",
        "model": {"name": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": options.layers,
                  "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True},
        "data": {"source": "tokens", "root": folder, "train": {"file": "train.bin"}, "sequence_length": LENGTH,
                 "batch_size": ROWS // ranks},
        "optimizer": {"name": "adamw", "weight_decay": 0.1},
        "learning_rate": {"name": "constant", "base": 6e-4},
        "strategy": {"gradient_merge": True, "gradient_merge_configs": {"k_steps": options.accumulate, "avg": True}},
        "train": {"epochs": 1, "max_steps": options.updates * options.accumulate, "fetch_every": options.accumulate, "output": output},
        "checkpoint": {"at_end": False},
        "comm": {"backend": "shm"},
    }
    with open(output + ".json", "w") as text:
        json.dump(job, text)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(2 // ranks)}
    command = [os.path.join(BIN, "fleetrun"), f"--nproc_per_node={ranks}", f"--log_dir={output}.log", output + ".json"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"language_ranks: {ranks} ranks ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    with open(os.path.join(output, "metrics.jsonl")) as lines:
        train = [event for event in map(json.loads, lines) if event["event"] == "train"]
    seconds = train[-1]["time"] - train[0]["time"]
    return (len(train) - 1) * options.accumulate * ROWS * LENGTH / seconds, [event["loss"] for event in train]


with tempfile.TemporaryDirectory() as folder:
    numbers = random.Random(1)
    tokens = array.array("H", (numbers.randrange(49152) for _ in range(LENGTH * ROWS * options.accumulate * options.updates + 1)))
    with open(os.path.join(folder, "train.bin"), "wb") as file:
        tokens.tofile(file)
    pairs = []
    for number in range(options.rounds):
        order = (1, 2) if number % 2 else (2, 1)
        speeds = {ranks: run(folder, ranks) for ranks in order}
        for mine, other in zip(speeds[2][1], speeds[1][1]):
            if abs(mine - other) > 1e-4 * other:
                sys.exit(f"language_ranks: the losses differ: {speeds[2][1]} and {speeds[1][1]}")
        pairs.append((speeds[2][0], speeds[1][0]))
        print(f"round {number + 1}: two ranks {pairs[-1][0]:.0f}, one rank {pairs[-1][1]:.0f} tokens a second", flush=True)
ratio, two, one = (statistics.median(values) for values in zip(*((a / b, a, b) for a, b in pairs)))
print(f"language_ranks: ratio {ratio:.3f} (ours {two:.0f} tokens/s, one rank with 2 threads {one:.0f} tokens/s)")
