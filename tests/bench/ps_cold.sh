#!/usr/bin/env bash
# A sparse table of three times the memory that a control group gives its process, with storage rocksdb, next to the same table in memory without a
# limit: rows created, and rows pulled and pushed, a second; the memory of the group, and the bytes on the disk.
#
#   tests/bench/ps_cold.sh [MEBIBYTES [FOLDER [SECONDS]]]     default 192, /var/tmp, 10 for each kind of ids; 2 to 3 minutes
#
# Builds: bench_ps_cold_rows
set -euo pipefail
limit=${1:-192}
seconds=${3:-10}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=${FLEET_BIN:-$root/build/release/bin}/bench_ps_cold_rows
folder=$(mktemp -d "${2:-/var/tmp}/ps_cold.XXXXXX")
group=
finish() {
  rm -rf "$folder"
  [ -z "$group" ] || rmdir "$group" 2>/dev/null || true
}
trap finish EXIT

# A group below this process's own, of either version. Sets group and the files of its limit and its peak.
make_group() {
  local own base
  own=$(sed -n 's/^[0-9]*:\([a-z,]*,\)\?memory\(,[a-z,]*\)\?://p' /proc/self/cgroup)
  if [ -n "$own" ]; then
    base=/sys/fs/cgroup/memory$own limit_file=memory.limit_in_bytes peak_file=memory.max_usage_in_bytes
  else
    base=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup) limit_file=memory.max peak_file=memory.peak
  fi
  mkdir "$base/ps_cold.$$" 2>/dev/null || return 1
  group=$base/ps_cold.$$
  echo $((limit << 20)) 2>/dev/null >"$group/$limit_file" || return 1
}
make_group || { echo "SKIP: no control group with a limit of memory can be made here"; exit 0; }

row=64  # bytes of 16 float32
rows=$((3 * (limit << 20) / row))
cache=$((limit / 2)) # MiB; the rest is for the program, its allocator and the pages of files
"$program" memory "$rows" 0 "$folder" "$(((seconds + 3) / 4))" >"$folder/memory"
# The shell joins the group, and then becomes the program.
bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$program" rocksdb "$rows" "$cache" "$folder/db" "$seconds" >"$folder/rocksdb" || {
  echo "FAILED: the program ended with $? at a limit of $limit MiB"
  exit 1
}

value() { awk -v name="$2" -v field="$3" '$1 == name { print $field }' "$folder/$1"; }
mebibytes() { echo $(($1 >> 20)); }
[ "$(value rocksdb rows 2)" = "$rows" ] || { cat "$folder/rocksdb"; echo "FAILED: rows are missing"; exit 1; }
echo "rows: $rows of $row bytes are $((3 * limit)) MiB; limit of the group $limit MiB, storage.cache_memory $cache MiB"
echo "memory: the table counts at most $(mebibytes "$(value rocksdb held 2)") MiB, the process had $(mebibytes "$(value rocksdb peak 2)") MiB," \
  "the group with pages of files $(mebibytes "$(cat "$group/$peak_file" 2>/dev/null || echo 0)") MiB; in memory $(mebibytes "$(value memory peak 2)") MiB"
echo "disk: at most $(mebibytes "$(value rocksdb disk 2)") MiB"
for what in new_rows uniform zipf; do
  awk -v what=$what -v cold="$(value rocksdb $what 2)" -v wall="$(value rocksdb $what 3)" -v memory="$(value memory $what 2)" -v clock="$(value memory $what 3)" \
    'BEGIN { printf "%s by processor time: rocksdb %.3f M rows/s, memory %.3f M rows/s\n", what, cold, memory
             printf "cold_%s: ratio %.4f (ours %.4f M rows/s, memory %.4f M rows/s)\n", what, wall / clock, wall, clock }'
done
