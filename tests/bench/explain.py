#!/usr/bin/env python3
"""Predicts memory and time of jobs with fleet-worker --explain, then runs them and compares.

    scripts/bench.sh explain [NAME...] [--predict FILE] [--measure FILE]

First every prediction is made, then every job runs. Memory is VmHWM of rank 0's process (peak_host_memory of metrics.jsonl) and should be
within 10 % of the prediction, the median step within 25 %. NAME: only these cases. --predict FILE writes the predictions and ends,
--measure FILE runs the jobs against predictions that were written before: in parts, where a machine cannot be kept quiet for long.
The last cases are networks and batches of no configuration in this repository, and language models.
"""
# Builds: fleetrun fleet-worker
import array
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
MEMORY, TIME = 0.10, 0.25  # allowed difference

# name: (model, batch, image [channels, side] or row [tokens], ranks, threads, optimizer, strategy, steps)
CASES = {
    "lenet": ({"name": "lenet", "num_classes": 10}, 64, (1, 28), 1, 1, {"name": "momentum"}, {}, 200),
    "resnet20_2_ranks": ({"name": "resnet20", "num_classes": 10}, 64, (3, 32), 2, 1, {"name": "momentum"}, {}, 20),
    "resnet50": ({"name": "resnet50", "num_classes": 1000}, 16, (3, 224), 1, 2, {"name": "momentum"}, {}, 6),
    "resnet50_amp": ({"name": "resnet50", "num_classes": 1000}, 8, (3, 224), 1, 1, {"name": "momentum"}, {"amp": True}, 6),
    "mlp_adam_2_ranks": ({"name": "mlp", "num_classes": 64, "hidden": [1536, 1536, 1536]}, 32, (3, 24), 2, 1, {"name": "adam"}, {}, 20),
    "resnet18_recompute": ({"name": "resnet18", "num_classes": 100}, 16, (3, 112), 1, 1, {"name": "momentum"},
                           {"recompute": True, "recompute_configs": {"checkpoints": ["every block"]}}, 8),
    "mlp_pipeline_2_ranks": ({"name": "mlp", "num_classes": 10, "hidden": [768] * 16}, 1024, (1, 34), 2, 1, {"name": "sgd"},
                             {"pipeline": True, "pipeline_configs": {"accumulate_steps": 16}}, 8),
    "vgg13_bn": ({"name": "vgg13_bn", "num_classes": 37}, 6, (3, 96), 1, 1, {"name": "momentum"}, {}, 8),
    "densenet121_2_ranks": ({"name": "densenet121", "num_classes": 23}, 5, (3, 128), 2, 1, {"name": "momentum"}, {}, 8),
    "gpt2": ({"name": "gpt2", "n_layer": 4, "n_embd": 384, "n_head": 6, "vocab_size": 16384}, 4, (256,), 1, 1, {"name": "adamw"}, {}, 6),
    "llama_2_ranks": ({"name": "llama", "num_hidden_layers": 6, "hidden_size": 384, "intermediate_size": 1024, "num_attention_heads": 6,
                       "num_key_value_heads": 2, "vocab_size": 8192, "tie_word_embeddings": True}, 2, (512,), 2, 1, {"name": "adamw"}, {}, 6),
    "llama_recompute": ({"name": "llama", "num_hidden_layers": 12, "hidden_size": 256, "intermediate_size": 688, "num_attention_heads": 4,
                         "vocab_size": 4096}, 8, (512,), 1, 1, {"name": "adamw"},
                        {"recompute": True, "recompute_configs": {"checkpoints": ["every block"]}}, 6),
    "qwen3_amp": ({"name": "qwen3", "num_hidden_layers": 4, "hidden_size": 512, "intermediate_size": 1536, "num_attention_heads": 8,
                   "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000}, 4, (384,), 1, 1, {"name": "adamw"}, {"amp": True}, 6),
    "mistral_merged": ({"name": "mistral", "num_hidden_layers": 6, "hidden_size": 320, "intermediate_size": 896, "num_attention_heads": 5,
                        "num_key_value_heads": 5, "vocab_size": 10000, "sliding_window": 64}, 3, (640,), 1, 1, {"name": "lamb"},
                       {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2}}, 8),
}


def data_of(folder, name):
    model, batch, sample, ranks, _, _, _, steps = CASES[name]
    if len(sample) == 2:
        return {"source": "synthetic", "image": {"channels": sample[0], "height": sample[1], "width": sample[1]},
                "train": {"samples": ranks * batch * steps}}
    tokens = array.array("H", (number * 7919 % model["vocab_size"] for number in range(ranks * batch * steps * sample[0] + 1)))
    with open(os.path.join(folder, name + ".bin"), "wb") as file:
        tokens.tofile(file)
    return {"source": "tokens", "root": folder, "train": {"file": name + ".bin"}, "sequence_length": sample[0]}


def job_of(folder, name):
    model, batch, sample, _, _, optimizer, strategy, steps = CASES[name]
    return {
        "task": "image_classification" if len(sample) == 2 else "causal_lm",
        "model": model,
        "data": {"batch_size": batch, **data_of(folder, name)},
        "optimizer": optimizer,
        "learning_rate": {"name": "constant", "base": 1e-4},
        "strategy": strategy,
        "train": {"epochs": 1, "fetch_every": 1 if steps < 50 else 10, "evaluate_every": 0},
        "checkpoint": {"at_end": False},
    }


def write_job(folder, name):
    file = os.path.join(folder, name + ".json")
    with open(file, "w") as text:
        json.dump(job_of(folder, name), text)
    return file


def call(command, threads, what):
    ended = subprocess.run(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(threads)},
                           capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"explain: {what} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def predict(folder, name):
    """(bytes, seconds)"""
    ranks, threads = CASES[name][3:5]
    output = call([os.path.join(BIN, "fleet-worker"), write_job(folder, name), "--explain", "--format=json", f"--ranks={ranks}",
                   "--device=cpu"], threads, f"--explain of {name}")
    explained = json.loads(output.strip().splitlines()[-1])
    return explained["memory"]["total"], explained["step"]["seconds"]


def measure(folder, name):
    """(bytes, seconds)"""
    ranks, threads = CASES[name][3:5]
    output = os.path.join(folder, name)
    call([os.path.join(BIN, "fleetrun"), f"--nproc_per_node={ranks}", f"--log_dir={output}.log", write_job(folder, name), "--set",
          "train.output=" + output], threads, name)
    with open(os.path.join(output, "metrics.jsonl")) as lines:
        events = [json.loads(line) for line in lines]
    train = [event for event in events if event["event"] == "train"]
    seconds = [(b["time"] - a["time"]) / (b["step"] - a["step"]) for a, b in zip(train[1:], train[2:])]
    return events[-1]["peak_host_memory"][0], statistics.median(seconds)


def main():
    arguments = sys.argv[1:]
    files = {}
    for option in ("--predict", "--measure"):
        if option in arguments:
            at = arguments.index(option)
            files[option] = arguments[at + 1]
            del arguments[at:at + 2]
    names = arguments or list(CASES)
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        if "--measure" in files:
            with open(files["--measure"]) as text:
                predicted = json.load(text)
        else:
            predicted = {name: predict(folder, name) for name in names}
        for name in names:
            print(f"explain_{name}: predicted {predicted[name][0] / 1e6:.1f} MB, {predicted[name][1] * 1e3:.2f} ms a step", flush=True)
        if "--predict" in files:
            with open(files["--predict"], "w") as text:
                json.dump(predicted, text)
            return
        for name in names:
            memory, seconds = measure(folder, name)
            for what, ours, truth, allowed in (("memory", predicted[name][0], memory, MEMORY), ("time", predicted[name][1], seconds, TIME)):
                met = abs(ours / truth - 1) <= allowed
                print(f"explain_{name}_{what}: ratio {ours / truth:.3f} (predicted {ours:.6g}, measured {truth:.6g}; asked for within "
                      f"{allowed:.0%}: {'met' if met else 'MISSED'})", flush=True)
                if not met:
                    missed.append(f"{name}'s {what}")
    if missed:
        sys.exit("explain: " + ", ".join(missed))


main()
