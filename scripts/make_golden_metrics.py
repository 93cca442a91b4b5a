#!/usr/bin/env python3
"""Generates tests/golden/metrics.json: scikit-learn's, scipy's, seqeval's and SQuAD's metrics on 1,000 random cases each.

    python3 scripts/make_golden_metrics.py evaluate-v2.0.py    # with scikit-learn, scipy, seqeval; the script is SQuAD's

tests/engine/models/metrics_golden_test.cc draws the same cases: number i of a case is splitmix64(FNV-1a(its name) + i).
Values are kept as weighted sums over 25 cases, a weight from 1 to 2 for each; one that is not a number counts as 7.
"""
import importlib.util
import json
import math
import os
import sys
import warnings

try:
    from scipy import stats
    from seqeval import metrics as seqeval
    from sklearn import metrics as sklearn
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install scikit-learn scipy seqeval)")
    sys.exit(0)
if len(sys.argv) != 2:
    print("SKIP: the argument is SQuAD's evaluate-v2.0.py (rajpurkar.github.io/SQuAD-explorer)")
    sys.exit(0)

warnings.simplefilter("ignore")
MASK = 2**64 - 1
CASES, GROUP = 1000, 25
TAGS = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-PER", "S-LOC", "I", "B", "E-LOC-2", "X-LOC"]
WORDS = ["the", "The", "a", "An", "cat", "Cat", "cat's", "U.S.", "É", "é", "naïve", "1,000", "Straße", "-", "–", "_", "don't",
         "the_cat", "½", "ÇA", "x\u00a0y", "(a)", "Theatre", "a–the"]
JOINTS = [" ", "  ", "\t", "\u2003"]


def splitmix64(value):
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Draw:
    def __init__(self, name):
        self.at = 0xCBF29CE484222325
        for byte in name.encode():
            self.at = ((self.at ^ byte) * 0x100000001B3) & MASK

    def __call__(self, below):
        value = splitmix64(self.at) >> 11
        self.at = (self.at + 1) & MASK
        return value % below


def class_case(i):
    draw = Draw(f"classes{i}")
    classes, samples, mode = 2 + draw(4), 1 + draw(30), draw(5)
    own, predicted = [], []
    for _ in range(samples):
        label, other, hit = draw(classes), draw(classes), draw(4) > 0
        own.append(1 if mode == 0 else label)
        predicted.append(0 if mode == 1 else label if mode > 2 and hit else other)
    return own, predicted


def number_case(i):
    draw = Draw(f"numbers{i}")
    samples, mode = 2 + draw(30), draw(6)
    targets, predictions = [], []
    for _ in range(samples):
        a, b = (draw(4), draw(4)) if mode < 2 else (draw(1 << 20) / 1024, draw(1 << 20) / 1024)
        targets.append(3.5 if mode == 2 else a)
        predictions.append(1 if mode == 3 else a / 2 + b / 8 if mode == 4 else b)
    return targets, predictions


def entity_case(i):
    draw = Draw(f"entities{i}")
    texts, known, expected, predicted = 1 + draw(4), 2 + draw(len(TAGS) - 1), [], []
    for _ in range(texts):
        length = draw(10)
        expected.append([])
        predicted.append([])
        for _ in range(length):
            tag, other, hit = TAGS[draw(known)], TAGS[draw(known)], draw(3) > 0
            expected[-1].append(tag)
            predicted[-1].append(tag if hit else other)
    return expected, predicted


def answer_of(draw):
    words = [WORDS[draw(len(WORDS))] for _ in range(draw(5))]
    text = ""
    for word in words:
        text += word + JOINTS[draw(len(JOINTS))]
    return text


def answer_case(i):
    draw = Draw(f"answers{i}")
    right = [answer_of(draw) for _ in range(draw(4))]
    if draw(3) > 0 and right:
        return right, right[0].upper() if draw(2) else right[0] + answer_of(draw)
    return right, answer_of(draw)


def values_of(squad):
    values = {}

    def add(name, value):
        values.setdefault(name, []).append(float(value))

    for i in range(CASES):
        own, predicted = class_case(i)
        binary = [min(c, 1) for c in own], [min(c, 1) for c in predicted]
        add("accuracy", sklearn.accuracy_score(own, predicted))
        add("macro_f1", sklearn.f1_score(own, predicted, average="macro"))
        add("f1", sklearn.f1_score(*binary, pos_label=1, zero_division=0))
        add("matthews", sklearn.matthews_corrcoef(own, predicted))
        add("binary_matthews", sklearn.matthews_corrcoef(*binary))
        targets, predictions = number_case(i)
        add("pearson", stats.pearsonr(targets, predictions).statistic)
        add("spearman", stats.spearmanr(targets, predictions).statistic)
        expected, tagged = entity_case(i)
        add("entity_f1", seqeval.f1_score(expected, tagged))
        add("entity_precision", seqeval.precision_score(expected, tagged))
        add("entity_recall", seqeval.recall_score(expected, tagged))
        add("tag_accuracy", seqeval.accuracy_score(expected, tagged) if any(expected) else 0)
        right, answer = answer_case(i)
        data = [{"paragraphs": [{"qas": [{"id": "q", "answers": [{"text": text} for text in right]}]}]}]
        exact, f1 = squad.get_raw_scores(data, {"q": answer})
        add("exact_match", exact["q"])
        add("answer_f1", f1["q"])
    return values


def weighted_sums(name, values):
    sums = []
    for begin in range(0, CASES, GROUP):
        total = 0.0
        for i in range(begin, begin + GROUP):
            weight = 1 + Draw(f"{name}{i}")(1 << 20) / (1 << 20)
            total += weight * (7 if math.isnan(values[i]) else values[i])
        sums.append(float(f"{total:.11g}"))
    return sums


def main():
    spec = importlib.util.spec_from_file_location("squad", sys.argv[1])
    squad = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(squad)
    golden = {name: weighted_sums(name, values) for name, values in values_of(squad).items()}
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "metrics.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f'"{name}": {json.dumps(sums)}' for name, sums in golden.items()) + "\n}\n")


if __name__ == "__main__":
    main()
