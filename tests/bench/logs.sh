#!/usr/bin/env bash
# 8 ranks that write as much as they can, all of it into their logs: through fleetrun, against the same 8 writers each piped
# into `cat > file`. Ratios of the time and of the processor time of everything, medians over interleaved runs.
#
#   tests/bench/logs.sh [RUNS] [MEGABYTES a rank]     default 9 and 100
# Builds: fleetrun launch_rank_helper
set -euo pipefail
runs=${1:-9}
bytes=$((${2:-100} * 1000000))
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=$(realpath "${FLEET_BIN:-$root/build/release/bin}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1  # no pinning: the writers run where those of cat run

writers=(8 "$bin/launch_rank_helper" fill "$bytes")
run_cat() {
  local rank
  for ((rank = 0; rank < writers[0]; ++rank)); do
    RANK=$rank "${writers[@]:1}" | cat >"run_cat.$rank" &
  done
  wait
}
run_logs() { "$bin/fleetrun" --nproc_per_node="${writers[0]}" --log_dir="$1" "${@:2}" "${writers[@]:1}" >/dev/null 2>&1; }
run_files() { run_logs "${FUNCNAME[0]}" --redirects=3; }
run_rotated() { run_logs "${FUNCNAME[0]}" --redirects=3 --log_max_size=20M --log_total_size=500M; }
run_stamped() { run_logs "${FUNCNAME[0]}" --redirects=3 --timestamps=files; }
run_shown() { run_logs "${FUNCNAME[0]}" --ranks=all; }
run_collapsed() { run_logs "${FUNCNAME[0]}" --ranks=all --collapse=on; }

ways=(cat files rotated stamped shown collapsed)
for ((run = 0; run < runs; ++run)); do
  for way in "${ways[@]}"; do
    rm -rf run_*
    TIMEFORMAT='%R %U %S'
    { time "run_$way"; } 2>"$way.time"
    awk '{ printf "%d %d\n", $1 * 1000, ($2 + $3) * 1000 }' "$way.time" >>"$way.ms"
  done
done

median() { sort -n -k"$2,$2" "$1.ms" | awk -v column="$2" '{ v[NR] = $column } END { print v[int((NR + 1) / 2)] }'; }
wall=$(median cat 1) cpu=$(median cat 2)
for way in "${ways[@]}"; do
  awk -v way="$way" -v ms="$(median "$way" 1)" -v used="$(median "$way" 2)" -v wall="$wall" -v cpu="$cpu" -v bytes="$bytes" \
    'BEGIN { printf "logs: %-9s %6.0f MB/s, time ratio %.2f, processor ratio %.2f of cat > file\n", way, 8 * bytes / ms / 1000, ms / wall, used / cpu }'
done
