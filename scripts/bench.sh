#!/usr/bin/env bash
# Runs one benchmark; without a name, lists them. Each prints ratios against a peer or a bound measured in the same run.
#
#   scripts/bench.sh [NAME [options...]]
#
# NAME is tests/bench/NAME.sh, tests/bench/NAME.py or tests/bench/NAME_bench.cc (built as build/release/bin/bench_NAME). A
# line "# Builds: fleetrun bench_x" in a script names the targets that it needs.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

names() {
  local file
  for file in tests/bench/*.sh tests/bench/*.py tests/bench/*_bench.cc; do
    [ -e "$file" ] || continue
    file=$(basename "$file")
    file=${file%_bench.cc}
    echo "${file%.*}"
  done | sort -u
}

if [ $# -eq 0 ]; then
  names
  exit 0
fi
name=$1
shift
build_for() {
  local targets
  targets=$(sed -n 's/^# Builds: //p' "$1")
  # shellcheck disable=SC2086  # a list of targets
  [ -z "$targets" ] || build release $targets
}
if [ -e "tests/bench/$name.sh" ]; then
  build_for "tests/bench/$name.sh"
  exec bash "tests/bench/$name.sh" "$@"
elif [ -e "tests/bench/$name.py" ]; then
  build_for "tests/bench/$name.py"
  # Debian's interpreter, for which Debian's python3-torch is installed.
  exec "${FLEET_PYTHON:-/usr/bin/python3}" "tests/bench/$name.py" "$@"
elif [ -e "tests/bench/${name}_bench.cc" ]; then
  build release "bench_$name"
  exec "build/release/bin/bench_$name" "$@"
fi
die "unknown benchmark '$name'; use one of: $(names | tr '\n' ' ')"
