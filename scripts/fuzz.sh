#!/usr/bin/env bash
# Looks for inputs that break a parser: runs the targets of tests/fuzz with libFuzzer (docs/contributing/fuzzing.md).
#
#   scripts/fuzz.sh [SECONDS] [NAME...]     SECONDS a target (default 60); NAME: nodes, jpeg... (default: all)
#
# An input that breaks one is kept below build/fuzz/findings/NAME; then it ends with 1.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=60
if [ $# -gt 0 ] && [[ $1 =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(basename -s _fuzz.cc tests/fuzz/*/*_fuzz.cc)
for name in "${names[@]}"; do
  compgen -G "tests/fuzz/*/${name}_fuzz.cc" >/dev/null ||
    die "no target '$name'; there are: $(basename -s _fuzz.cc tests/fuzz/*/*_fuzz.cc | xargs)"
done

# The compiler, libFuzzer and the sanitizers, symbols in reports, OpenMP for the engine.
scripts/setup.sh clang-16 libclang-rt-16-dev llvm-16 libomp-16-dev
build fuzz "${names[@]/#/fuzz_}"

root=$PWD/build/fuzz
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer-16 || true)
export ASAN_SYMBOLIZER_PATH
mkdir -p "$root/empty"  # where targets run: there are no files that an input could name
found=()
for name in "${names[@]}"; do
  # What earlier runs learned is kept in build/fuzz/corpus.
  mkdir -p "$root/corpus/$name" "$root/findings/$name"
  log=$root/findings/$name.log
  code=0
  (cd "$root/empty" && "$root/bin/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 \
    -max_len=16384 -print_final_stats=1 -artifact_prefix="$root/findings/$name/" "$root/corpus/$name" \
    "$root/../../tests/fuzz/corpus/$name") >"$log" 2>&1 </dev/null || code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  memory=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  if [ "$code" -eq 0 ]; then
    echo "$name: $runs inputs, $rate a second, at most ${memory:-?} MiB"
  else
    found+=("$name")
    echo "$name: FINDING after ${runs:-?} inputs: $(grep -m1 -E '^(not true:|SUMMARY:|==[0-9]+== ?ERROR:|.*runtime error:)' "$log" || echo "see $log")"
  fi
done
[ ${#found[@]} -eq 0 ] || die "findings in build/fuzz/findings: ${found[*]}"
