#!/usr/bin/env bash
# scripts/check_locks.sh refuses the marked lines of refused.cc and no others, and all of accepted.cc passes.
#
#   tests/common/base/locks/locks_test.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../../../.."
folder=tests/common/base/locks
code=0
scripts/check_locks.sh "$build" "$folder/accepted.cc" || code=$?
[ "$code" -ne 77 ] || exit 77
[ "$code" -eq 0 ] || { echo "FAILED: accepted.cc is refused"; exit 1; }
code=0
output=$(scripts/check_locks.sh "$build" "$folder/refused.cc" 2>/dev/null) || code=$?
[ "$code" -eq 1 ] || { echo "FAILED: the check of refused.cc ends with $code"; exit 1; }
diff <(grep -n '// refused$' "$folder/refused.cc" | cut -d: -f1) <(sed -n "s|^$folder/refused.cc:\([0-9]*\):.*|\1|p" <<<"$output" | sort -nu) ||
  { printf 'FAILED: other lines are refused (>) than those marked (<)\n%s\n' "$output"; exit 1; }
echo "ok"
