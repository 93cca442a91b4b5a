#!/usr/bin/env python3
"""What strategies send and hold in memory, two ranks, against what their algorithms say.

    tests/bench/strategy_costs.py [NAME...]

Bytes are counted by the transport (sent_bytes of metrics.jsonl), memory by the kernel (peak_host_memory: VmHWM). The net is an mlp of
14.9 million parameters on two images, so that nearly all of both is parameters, gradients and states. Nothing is timed.
"""
# Builds: fleetrun fleet-worker
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("FLEET_BIN") or os.path.join(ROOT, "build/release/bin"))
HIDDEN, CLASSES, SIDE = 2048, 128, 32
WEIGHTS = [3 * SIDE * SIDE * HIDDEN, HIDDEN * HIDDEN, HIDDEN * HIDDEN, HIDDEN * CLASSES]
BIASES = 3 * HIDDEN + CLASSES
PARAMETERS = 4 * (sum(WEIGHTS) + BIASES)  # bytes
STEPS, K = 24, 4

MOMENTUM, ADAM = {"name": "momentum", "momentum": 0.9}, {"name": "adam"}
SPARSITY = 0.99
# 8 bytes for each element sent; biases are summed whole.
DGC_BYTES = sum(8 * int(weight * (1 - SPARSITY)) for weight in WEIGHTS) + 4 * BIASES
# A gradient that something else than the sum takes at once is gone then: the largest one stands beside it.
LARGEST = 4 * max(WEIGHTS) / PARAMETERS
STRATEGIES = {
    # name: (strategy, optimizer, what it is compared with, bytes that rank 0 sends, memory that it adds in the size of the parameters)
    "plain": ({}, MOMENTUM, "plain", PARAMETERS, 0),
    # The sums stand where the gradients did.
    "gradient_merge": ({"gradient_merge": True, "gradient_merge_configs": {"k_steps": K}}, MOMENTUM, "plain", PARAMETERS / K, LARGEST),
    # The averages, while they are made: in the memory of activations where a net has as many.
    "localsgd": ({"localsgd": True, "localsgd_configs": {"k_steps": K, "begin_step": 1}}, MOMENTUM, "plain", PARAMETERS / K, 1),
    "adaptive_localsgd": ({"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": K, "begin_step": 1}}, MOMENTUM,
                          "plain", None, 1),
    # What was not sent yet; the velocity is momentum's.
    "dgc": ({"dgc": True, "dgc_configs": {"sparsity": [SPARSITY]}}, MOMENTUM, "plain", DGC_BYTES, 1),
    "fp16_allreduce": ({"fp16_allreduce": True}, MOMENTUM, "plain", PARAMETERS / 2, LARGEST - 0.5),
    "bf16_allreduce": ({"bf16_allreduce": True}, MOMENTUM, "plain", PARAMETERS / 2, LARGEST - 0.5),
    # The gradients that the other rank owns, and the parameters that this one does.
    "reduce": ({"build_strategy": {"reduce_strategy": 1}}, MOMENTUM, "plain", PARAMETERS, 0),
    "lars": ({"lars": True}, MOMENTUM, "plain", PARAMETERS, 0),
    "adam": ({}, ADAM, "plain", PARAMETERS, 1),
    "lamb": ({"lamb": True}, ADAM, "adam", PARAMETERS, 0),
}


def run(name, folder):
    """(bytes a step, bytes of memory, steps between two averages by line) of rank 0."""
    strategy, optimizer, *_ = STRATEGIES[name]
    output = os.path.join(folder, name)
    job = {
        "model": {"name": "mlp", "num_classes": CLASSES, "hidden": [HIDDEN] * 3},
        "data": {"source": "synthetic", "batch_size": 2, "image": {"channels": 3, "height": SIDE, "width": SIDE},
                 "train": {"samples": 4 * STEPS}},
        "optimizer": optimizer,
        "learning_rate": {"name": "constant", "base": 0.001},
        "strategy": strategy,
        "train": {"epochs": 1, "fetch_every": K, "evaluate_every": 0, "output": output},
        "checkpoint": {"at_end": False},
        "comm": {"backend": "gloo"},  # of shared memory each rank would hold the others' part too
    }
    file = output + ".json"
    with open(file, "w") as text:
        json.dump(job, text)
    ended = subprocess.run([os.path.join(BIN, "fleetrun"), "--nproc_per_node=2", f"--log_dir={output}.log", file],
                           env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"strategy_costs: {name} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    with open(os.path.join(output, "metrics.jsonl")) as lines:
        events = [json.loads(line) for line in lines]
    train = [event for event in events if event["event"] == "train"][2:]  # before, a strategy may still begin
    sent = sum(event["sent_bytes"] for event in train) / len(train)
    return sent, events[-1]["peak_host_memory"][0], [int(event.get("local_steps", 0)) for event in train]


def main():
    names = sys.argv[1:] or list(STRATEGIES)
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        results = {}

        def result(name):
            if name not in results:
                results[name] = run(name, folder)
            return results[name]

        for name in names:
            _, _, beside, expected, copies = STRATEGIES[name]
            sent, peak, chosen = result(name)
            if expected is None:
                print(f"{name}: parameters are averaged every {chosen} steps")
                expected = sum(PARAMETERS / k for k in chosen) / len(chosen)
            least, most = expected if isinstance(expected, tuple) else (expected, expected)
            nearest = min(max(sent, least), most)
            extra = (peak - result(beside)[1]) / PARAMETERS
            print(f"{name}_bytes: ratio {nearest / sent:.3f} (ours {sent:.0f} bytes a step, algorithm {nearest:.0f} bytes)")
            print(f"{name}_memory: {extra:+.2f} x the parameters beside {beside} (algorithm {copies:+.2f})")
            if not 0.97 <= nearest / sent <= 1.03:
                missed.append(f"{name}: bytes")
            if abs(extra - copies) > 0.2:
                missed.append(f"{name}: memory")
    if missed:
        sys.exit(f"strategy_costs: more than 3 % or 0.2 x the parameters off: {', '.join(missed)}")


main()
