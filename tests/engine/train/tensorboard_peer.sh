#!/usr/bin/env bash
# TensorBoard's own reader finds every value of a run's metrics.jsonl, also after a kill -9 and a resume.
# Usage: tensorboard_peer.sh FLEETRUN. FLEET_TENSORBOARD_PYTHON names a python that has tensorboard; ends with 77 without one.
set -euo pipefail
fleetrun=$1
python=${FLEET_TENSORBOARD_PYTHON:-python3}
"$python" -c 'import tensorboard.backend.event_processing.event_accumulator' 2>/dev/null || {
  echo "SKIP: no tensorboard for '$python'; FLEET_TENSORBOARD_PYTHON names a python that has it"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >job.json <<'JSON'
{"model": {"name": "mlp", "num_classes": 4, "hidden": [64]},
 "data": {"source": "synthetic", "batch_size": 16, "image": {"channels": 3, "height": 16, "width": 16},
          "train": {"samples": 4096}, "test": {"samples": 64}},
 "optimizer": {"name": "momentum"}, "learning_rate": {"name": "constant", "base": 0.01},
 "train": {"epochs": 20, "fetch_every": 5, "output": "run", "tensorboard_gradients": true, "evaluate_classes": true},
 "checkpoint": {"every_steps": 100, "resume": "auto"}}
JSON
"$fleetrun" --nproc_per_node=2 job.json >first.out 2>&1 & job=$!
for ((i = 0; i < 3000; ++i)); do
  compgen -G "run/checkpoints/step_*200" >/dev/null && break
  sleep 0.02
done
kill -KILL "$job"  # its guardian kills the ranks in the same way
wait "$job" 2>/dev/null || true
flock -w 20 run/.lock true || { echo "FAILED: the ranks are still there"; exit 1; }
"$python" - first <<'PYTHON'
import sys
from tensorboard.backend.event_processing import event_accumulator
events = event_accumulator.EventAccumulator("run/tensorboard")
events.Reload()
assert events.Scalars("train/loss"), "nothing can be read after the kill"
print(len(events.Scalars("train/loss")), "losses after kill -9")
PYTHON
"$fleetrun" --nproc_per_node=2 job.json >second.out 2>&1 || { cat second.out; exit 1; }
"$python" - <<'PYTHON'
import json, math, struct
from tensorboard.backend.event_processing import event_accumulator
everything = {kind: 0 for kind in ("scalars", "images", "histograms", "tensors")}
events = event_accumulator.EventAccumulator("run/tensorboard", size_guidance=everything)
events.Reload()
found = {}
for tag in events.Tags()["scalars"]:
    for event in events.Scalars(tag):
        found[tag, event.step] = event.value
wanted, last_start = {}, 0
for line in open("run/metrics.jsonl"):
    try:
        event = json.loads(line)
    except ValueError:
        continue  # cut off by the kill
    kind, step = event["event"], event.get("step", event.get("steps", 0))
    if kind == "start":  # supersedes what came after its step
        wanted = {key: value for key, value in wanted.items() if key[1] < step}
    for name, value in event.items():
        if name in ("event", "time", "step"):
            continue
        for key, one in ([(name, value)] if not isinstance(value, list) else
                         [(f"{name}/{i}", v) for i, v in enumerate(value)]):
            if isinstance(one, (int, float)):
                wanted[f"{kind}/{key}", step] = one
missing = [key for key in wanted if key not in found]
assert not missing, f"{len(missing)} of {len(wanted)} values are missing: {missing[:10]}"
for key, value in wanted.items():
    single = struct.unpack("f", struct.pack("f", value))[0]
    assert found[key] == single or math.isclose(found[key], value, rel_tol=1e-6), (key, value, found[key])
assert len(events.Tags()["images"]) == 8, events.Tags()["images"]
image = events.Images("images/0")[0]
assert (image.width, image.height) == (16, 16)
histograms = events.Histograms("gradients/norm")
assert histograms and histograms[-1].histogram_value.num == 4, histograms[:1]
assert "text" in str(events.SummaryMetadata("start/model")), "texts"
print(f"{len(wanted)} values, 8 images and {len(histograms)} histograms found by TensorBoard's reader")
PYTHON
