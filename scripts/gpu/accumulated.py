"""Results of networks that accumulate in a file over several runs, for benchmarks of all families (GPU and CPU)."""
import json
import os
import re

import report

PROFILE_LINE = r"\d calls .*ms/run"  # of an operation in --profile


class Results:
    """One file per machine and version; words: text that names both."""

    def __init__(self, folder, words):
        self.path = os.path.join(folder, re.sub(r"[^A-Za-z0-9._-]+", "_", words) + ".json")
        self.rows = {}
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.rows = json.load(file)

    def add(self, name, row):
        self.rows[name] = row
        report.write_json(os.path.dirname(self.path), os.path.basename(self.path), self.rows)

    def by_ratio(self):
        """The lowest ratio first; rows without one last."""
        return sorted(self.rows.values(), key=lambda row: float("inf") if row["ratio"] is None else row["ratio"])

    def print_slowest(self):
        """The operations of networks below their bar."""
        for row in self.by_ratio():
            for line in row.get("slowest", []):
                print(f"  {row['network']}: {line}")

    def summary(self, name):
        ratios = [row["ratio"] for row in self.rows.values() if row["ratio"] is not None]
        return (f"{name}: lowest ratio {min(ratios):.2f} of {len(ratios)} networks" if ratios else f"{name}: no ratio") \
            + f"; all in {self.path}"


def wanted(names, families, first_missing, known, what="families"):
    """The networks to measure: those named, or all; first_missing: first those that are not known yet."""
    unknown = [name for name in names if name not in families]
    if unknown:
        raise SystemExit(f"{what}: no figures of '{unknown[0]}': use {', '.join(families)}")
    chosen = list(names) or list(families)
    return sorted(chosen, key=lambda name: name in known) if first_missing else chosen


def slowest_operations(output, count=5):
    lines = [line.strip() for line in output.splitlines() if re.search(PROFILE_LINE, line)]
    return lines[:count]
