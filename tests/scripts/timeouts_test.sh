#!/usr/bin/env bash
# Every test of ctest has a timeout, of a quarter of an hour at most: one that hangs must not take all of the time that CI has.
#
#   tests/scripts/timeouts_test.sh BUILD_FOLDER
set -euo pipefail
command -v python3 >/dev/null || { echo "SKIP: no python3"; exit 77; }
ctest --test-dir "$1" --show-only=json-v1 | python3 -c '
import json, sys
tests = json.load(sys.stdin)["tests"]
wrong = []
for test in tests:
    limit = {each["name"]: each["value"] for each in test.get("properties", [])}.get("TIMEOUT", 0)
    if not 0 < limit <= 900:
        wrong.append(test["name"] + (f" ({limit:.0f} s)" if limit else ""))
if wrong or len(tests) < 50:
    sys.exit("FAILED: no timeout, or one of more than 900 s: " + ", ".join(wrong) if wrong else f"FAILED: only {len(tests)} tests")
print(f"ok: {len(tests)} tests")
'
