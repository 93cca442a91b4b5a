#!/usr/bin/env python3
"""Generates tests/golden/scores.json: scikit-learn's metrics of classes, scores, labels and numbers, on random cases.

    python3 scripts/make_golden_scores.py    # with numpy and scikit-learn; compares the ECE with torchmetrics if it is there

tests/engine/models/scores_golden_test.cc draws the same cases: number i of a case is splitmix64(FNV-1a(its name) + i). Some have
equal scores, absent classes or one class only. Probabilities are the softmax of the logits in double, rounded to float32.
"""
import json
import math
import os
import sys
import warnings

from golden_draws import fnv1a, splitmix64

try:
    import numpy
    from sklearn import metrics as sklearn
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install scikit-learn numpy)")
    sys.exit(0)

warnings.simplefilter("ignore")
CASES, LARGE = 24, 1000


class Draw:
    def __init__(self, name):
        self.at = fnv1a(name)

    def __call__(self, below):
        value = splitmix64(self.at) >> 11
        self.at += 1
        return value % below


def shape_of(draw, i):
    """Classes, samples and the mode of a case: 0 and 1 random, 2 equal scores, 3 an absent class, 4 one class, 5 confident."""
    classes = 2 if i % 4 == 0 else 3 + draw(4)
    return classes, LARGE if i % 8 == 1 else 20 + draw(60), i % 6


def class_case(i):
    draw = Draw(f"scores{i}")
    classes, samples, mode = shape_of(draw, i)
    labels, logits = [], []
    for _ in range(samples):
        label = draw(classes)
        label = min(label, classes - 2) if mode == 3 else 1 if mode == 4 else label
        row = [(draw(5) - 2.0) if mode == 2 else (draw(1 << 12) - 2048) / (32 if mode == 5 else 1024) for _ in range(classes)]
        if draw(3) > 0:
            row[label] += 1
        labels.append(label)
        logits.append(row)
    return labels, logits


def softmax(row):
    powers = [math.exp(x - max(row)) for x in row]
    total = 0.0
    for power in powers:
        total += power
    return [numpy.float32(power / total) for power in powers]


def label_case(i):
    draw = Draw(f"labels{i}")
    classes, samples, mode = shape_of(draw, i)
    targets, logits = [], []
    for _ in range(samples):
        row = [1 if draw(3) == 0 else 0 for _ in range(classes)]
        if mode == 3:
            row[-1] = 0
        if mode == 4:
            row = [1] * classes
        targets.append(row)
        logits.append([(draw(5) - 2.0 if mode == 2 else (draw(1 << 12) - 2048) / 1024) + row[c] for c in range(classes)])
    return targets, logits


def number_case(i):
    draw = Draw(f"errors{i}")
    count, samples, mode = 1 + draw(3), 2 + draw(60), i % 4
    targets, predictions = [], []
    for _ in range(samples):
        row = [3.5 if mode == 2 else draw(1 << 16) / 1024 for _ in range(count)]
        targets.append(row)
        predictions.append([y if mode == 3 or (mode == 2 and i % 8 == 2) else y + (draw(1 << 12) - 2048) / 512 for y in row])
    return targets, predictions


def calibration_error(labels, scores):
    """torchmetrics' (15 bins, [i/15, (i+1)/15), those of confidence 1 apart), in double."""
    if scores.shape[1] == 2:
        confidences, hits = scores[:, 1], labels == 1
    else:
        confidences, hits = scores.max(1), scores.argmax(1) == labels
    edges = (numpy.arange(16) / 15).astype(numpy.float32)
    bins = numpy.searchsorted(edges, confidences, side="right") - 1
    error = 0.0
    for b in range(16):
        own = bins == b
        error += abs(hits[own].astype(float).sum() - confidences[own].astype(float).sum()) / len(labels)
    compare_with_torchmetrics(labels, scores, error)
    return error


def compare_with_torchmetrics(labels, scores, error):
    try:
        import torch
        from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error
    except ImportError:
        return
    given, wanted = torch.tensor(scores), torch.tensor(labels)
    if scores.shape[1] == 2:
        other = binary_calibration_error(given[:, 1], wanted, n_bins=15)
    else:
        other = multiclass_calibration_error(given, wanted, num_classes=scores.shape[1], n_bins=15)
    assert abs(float(other) - error) < 1e-5, (float(other), error)


def undefined_left_out(values):
    values = [value for value in values if not math.isnan(value)]
    return sum(values) / len(values) if values else math.nan


def averages(truth, predicted):
    values = {}
    for average in ["macro", "weighted", "micro"]:
        precision, recall, f1, _ = sklearn.precision_recall_fscore_support(truth, predicted, average=average, zero_division=0)
        values |= {f"{average}_precision": precision, f"{average}_recall": recall, f"{average}_f1": f1}
    return values


def places(labels, logits, k):
    """Of equal scores the first class comes first, as in torch.topk()."""
    hits = 0
    for label, row in zip(labels, logits):
        order = sorted(range(len(row)), key=lambda c: (-row[c], c))
        hits += label in order[:k]
    return hits / len(labels)


def values_of_classes(i):
    labels, logits = class_case(i)
    labels, logits = numpy.array(labels), numpy.array(logits, dtype=numpy.float32)
    scores = numpy.array([softmax([float(x) for x in row]) for row in logits], dtype=numpy.float32)
    predicted, classes = logits.argmax(1), logits.shape[1]
    values = averages(labels, predicted)
    values["accuracy"] = sklearn.accuracy_score(labels, predicted)
    values["balanced_accuracy"] = sklearn.balanced_accuracy_score(labels, predicted)
    values["matthews"] = sklearn.matthews_corrcoef(labels, predicted)
    values["kappa"] = sklearn.cohen_kappa_score(labels, predicted)
    if classes == 2:
        values["precision"] = sklearn.precision_score(labels, predicted, zero_division=0)
        values["recall"] = sklearn.recall_score(labels, predicted, zero_division=0)
        values["f1"] = sklearn.f1_score(labels, predicted, zero_division=0)
        values["auroc"] = undefined_left_out([sklearn.roc_auc_score(labels, scores[:, 1])])
    else:
        areas = [sklearn.roc_auc_score(labels == c, scores[:, c]) for c in range(classes)]
        values["auroc"] = undefined_left_out(areas)
        if not any(map(math.isnan, areas)):
            whole = sklearn.roc_auc_score(labels, scores, multi_class="ovr")
            assert abs(whole - values["auroc"]) < 1e-12, (whole, values["auroc"])
    of_class = [sklearn.average_precision_score(labels == c, scores[:, c]) if (labels == c).any() else math.nan for c in range(classes)]
    if classes == 2:
        of_class = of_class[1:]
    values["mAP"] = undefined_left_out(of_class)
    values["average_precision"] = sum(0 if math.isnan(one) else one for one in of_class) / len(of_class)
    values["acc2"], values["acc3"] = places(labels, logits, 2), places(labels, logits, 3)
    values["ece"] = calibration_error(labels, scores)
    return values


def values_of_labels(i):
    targets, logits = label_case(i)
    targets, logits = numpy.array(targets), numpy.array(logits, dtype=numpy.float32)
    predicted = (logits >= 0).astype(int)
    values = averages(targets, predicted)
    values["accuracy"] = sklearn.accuracy_score(targets, predicted)
    columns = range(targets.shape[1])
    values["auroc"] = undefined_left_out([sklearn.roc_auc_score(targets[:, c], logits[:, c]) for c in columns])
    values["average_precision"] = sklearn.average_precision_score(targets, logits)
    values["mAP"] = undefined_left_out(
        [sklearn.average_precision_score(targets[:, c], logits[:, c]) if targets[:, c].any() else math.nan for c in columns])
    return values


def values_of_numbers(i):
    targets, predictions = map(numpy.array, number_case(i))
    return {"r2": sklearn.r2_score(targets, predictions), "mae": sklearn.mean_absolute_error(targets, predictions),
            "rmse": sklearn.root_mean_squared_error(targets, predictions)}


def main():
    golden = {}
    for kind, of_case in [("classes", values_of_classes), ("labels", values_of_labels), ("numbers", values_of_numbers)]:
        golden[kind] = [{name: None if math.isnan(value) else float(value) for name, value in of_case(i).items()} for i in range(CASES)]
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "scores.json")
    with open(path, "w", encoding="utf-8") as file:
        parts = [f'"{kind}": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]" for kind, cases in golden.items()]
        file.write("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
