#!/usr/bin/env bash
# A sparse table of three times the memory that a control group gives its process, with storage rocksdb, next to the same table in
# memory without a limit: pulls and pushes a second by processor time, and the resident memory.
#
#   tests/bench/ps_cold.sh [MEBIBYTES [FOLDER]]     default 384, /var/tmp
#
# Builds: bench_ps_cold_rows
set -euo pipefail
limit=${1:-384}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=${FLEET_BIN:-$root/build/release/bin}/bench_ps_cold_rows
folder=$(mktemp -d "${2:-/var/tmp}/ps_cold.XXXXXX")
group=
finish() {
  rm -rf "$folder"
  [ -z "$group" ] || rmdir "$group" 2>/dev/null || true
}
trap finish EXIT

# A group below this process's own, of either version. Sets group and the file of its limit.
make_group() {
  local own base
  own=$(sed -n 's/^[0-9]*:\([a-z,]*,\)\?memory\(,[a-z,]*\)\?://p' /proc/self/cgroup)
  if [ -n "$own" ]; then
    base=/sys/fs/cgroup/memory$own limit_file=memory.limit_in_bytes
  else
    base=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup) limit_file=memory.max
  fi
  mkdir "$base/ps_cold.$$" 2>/dev/null || return 1
  group=$base/ps_cold.$$
  echo $((limit << 20)) 2>/dev/null >"$group/$limit_file" || return 1
}
make_group || { echo "SKIP: no control group with a limit of memory can be made here"; exit 0; }

row=64  # bytes of 16 float32
rows=$((3 * (limit << 20) / row))
cached=$(((limit << 20) / row / 5))  # a fifth of the memory
"$program" memory "$rows" "$cached" "$folder" >"$folder/memory"
# The shell joins the group, and then becomes the program.
bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$program" rocksdb "$rows" "$cached" "$folder/db" >"$folder/rocksdb"

value() { awk -v name="$2" -v field="$3" '$1 == name { print $field }' "$folder/$1"; }
[ "$(value rocksdb rows 2)" = "$rows" ] || { cat "$folder/rocksdb"; echo "FAILED: rows are missing"; exit 1; }
echo "rows: $rows of $row bytes are $((3 * limit)) MiB, the limit $limit MiB, $cached rows are cached"
for what in new_rows pulls_any pushes_any pulls_hot pushes_hot; do
  awk -v what=$what -v cold="$(value rocksdb $what 2)" -v wall="$(value rocksdb $what 3)" -v memory="$(value memory $what 2)" \
    'BEGIN { printf "cold_%s: ratio %.3f (rocksdb %.3f M/s, %.3f by the clock, memory %.3f M/s)\n", what, cold / memory, cold, wall, memory }'
done
awk -v cold="$(value rocksdb peak 2)" -v limit=$((limit << 20)) -v memory="$(value memory peak 2)" \
  'BEGIN { printf "cold_resident: ratio %.2f (%.0f MiB of the limit of %.0f MiB; in memory %.0f MiB)\n", cold / limit, cold / 2^20, limit / 2^20, memory / 2^20 }'
