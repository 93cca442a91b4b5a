#!/usr/bin/env bash
# docs/reference/options.md, job_keys.md and operations.md, and the lists in models.md and optimizers.md, are what scripts/reference_pages.sh writes
# from these programs.
#
#   tests/package/reference_pages_test.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
written=$(mktemp -d)
trap 'rm -rf "$written"' EXIT
scripts/reference_pages.sh "$build" "$written" || { echo "FAILED: scripts/reference_pages.sh ends with $?"; exit 1; }
for page in options.md job_keys.md operations.md models.md optimizers.md; do
  rows=$(grep -c '^| `' "$written/$page")
  case $page in models.md) least=8 ;; optimizers.md) least=15 ;; operations.md) least=40 ;; *) least=100 ;; esac
  [ "$rows" -gt "$least" ] || { echo "FAILED: $page has only $rows rows: the programs print another form"; exit 1; }
  diff -u "docs/reference/$page" "$written/$page" ||
    { echo "FAILED: docs/reference/$page is out of date: run scripts/reference_pages.sh"; exit 1; }
done
echo "ok"
