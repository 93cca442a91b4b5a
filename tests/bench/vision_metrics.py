#!/usr/bin/env python3
"""All metrics of the scores of a classifier: 50,000 samples of 1,000 classes on 2 ranks, and scikit-learn on some of them.

    FLEET_PYTHON=PYTHON scripts/bench.sh vision_metrics [SAMPLES [CLASSES [RANKS]]]   # a Python with numpy and scikit-learn

Prints the seconds (bound: 5) and the memory (bound: 1 GB, of both ranks and their batches), then compares the values for 2,000
samples with scikit-learn's, and the times for them. Without scikit-learn, only the former.
"""
# Builds: bench_vision_metrics
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

here = os.path.dirname(os.path.abspath(__file__))
program = os.path.join(here, "../../build/release/bin/bench_vision_metrics")
given = sys.argv[1:4] + ["50000", "1000", "2"][len(sys.argv[1:4]):]
SOME = 2000


def ours(samples, *more):
    text = subprocess.run([program, str(samples), *given[1:], *more], capture_output=True, text=True, check=True).stdout
    return text, float(re.search(r"ranks, .*: ([0-9.]+) s", text)[1]), float(re.search(r": (\d+) MiB", text)[1])


text, seconds, memory = ours(given[0])
print(text, end="")
if given == ["50000", "1000", "2"]:
    print(f"vision_metrics: bound 5 s: {'held' if seconds <= 5 else 'MISSED'}, "
          f"bound 1 GB: {'held' if memory * 1.048576 <= 1000 else 'MISSED'}")
try:
    import numpy
    import sklearn
    from sklearn import metrics
except ImportError as error:
    print(f"vision_metrics: against scikit-learn: skipped: {error.name} is not installed here")
    sys.exit(0)

warnings.simplefilter("ignore")
classes = int(given[1])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "values")
    seconds = ours(SOME, path)[1]
    with open(path, encoding="utf-8") as file:
        values = json.load(file)
    rows = numpy.fromfile(path + ".rows", dtype=numpy.float32).reshape(-1, classes + 1)
labels, logits = rows[:, 0].astype(int), rows[:, 1:]
begun = time.monotonic()
powers = numpy.exp(logits.astype(float) - logits.max(1, keepdims=True))
scores = (powers / powers.sum(1, keepdims=True)).astype(numpy.float32)
predicted = logits.argmax(1)
peer = {"accuracy": metrics.accuracy_score(labels, predicted), "kappa": metrics.cohen_kappa_score(labels, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, predicted), "matthews": metrics.matthews_corrcoef(labels, predicted)}
for average in ["macro", "weighted", "micro"]:
    parts = metrics.precision_recall_fscore_support(labels, predicted, average=average, zero_division=0)
    peer |= {f"{average}_{name}": part for name, part in zip(["precision", "recall", "f1"], parts)}
shown = [c for c in range(classes) if (labels == c).any()]
peer["auroc"] = numpy.mean([metrics.roc_auc_score(labels == c, scores[:, c]) for c in shown])
peer["mAP"] = numpy.mean([metrics.average_precision_score(labels == c, scores[:, c]) for c in shown])
taken = time.monotonic() - begun
off = max(abs(values[name] - value) for name, value in peer.items())
print(f"vision_metrics: {len(peer)} values of {SOME} samples differ from scikit-learn {sklearn.__version__} (numpy "
      f"{numpy.__version__}) by at most {off:.1e}")
print(f"vision_metrics: {SOME} samples: ratio {taken / seconds:.0f} (scikit-learn {taken:.2f} s on one core, ours {seconds:.3f} s on "
      f"{given[2]} ranks)")
sys.exit(off > 1e-12)
