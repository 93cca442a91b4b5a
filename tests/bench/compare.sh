#!/usr/bin/env bash
# fleetrun compare over many long runs, which it must read within 2 s from the page cache; against cat of the same files, with
# as many processes as cores.
# Usage: compare.sh [RUNS [LINES]]
# Builds: fleetrun
set -euo pipefail
runs=${1:-1000} lines=${2:-10000}
fleetrun=${FLEETRUN:-build/release/bin/fleetrun}
folder=$(mktemp -d "${TMPDIR:-/tmp}/fleetrun_compare.XXXXXX")
trap 'rm -rf "$folder"' EXIT
"${FLEET_PYTHON:-/usr/bin/python3}" - "$folder" "$runs" "$lines" <<'PYTHON'
import os, random, sys
folder, runs, lines = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(1)
train = ['{"event":"train","time":%.3f,"step":%d,"epoch":%d,"batch":%d,"loss":%r,"acc1":%r,"acc5":%r,'
         '"learning_rate":0.10000000149011612,"data_time":0.00011871599963342305,"batch_time":0.024635689859997,'
         '"speed":1299.2473212828476,"peak_host_memory":648138752,"reader_queue":2,"reader_queue_capacity":2,'
         '"sent_bytes":227211360,"received_bytes":227211360,"sent_bytes_between_hosts":0,"sent_bytes_total":454422720}\n'
         % (1795506014 + k, k * 10, k // 1000, k % 1000, random.random(), random.random(), random.random())
         for k in range(lines)]
for run in range(runs):
    name = "%s/run-%04d" % (folder, run)
    os.mkdir(name)
    with open(name + "/config.txt", "w") as file:
        for key in range(150):
            file.write("section.key_%d = %d  (default)\n" % (key, key))
        file.write("learning_rate.base = 0.%d  (job.json)\ntrain.seed = %d  (--set)\n" % (1 + run // 10 % 100, run % 10))
    with open(name + "/metrics.jsonl", "w") as file:
        file.write('{"event":"start","time":1795506000.0,"model":"resnet50","ranks":8,"seed":%d,"step":0}\n' % (run % 10))
        for begin in range(0, lines, 1000):
            file.writelines(train[begin:begin + 1000])
            file.write('{"event":"test","time":%d,"step":%d,"loss":0.5,"acc1":%r,"seconds":3}\n'
                       % (1795506014 + begin + 1000, begin * 10, min(begin / lines + random.random() / 10, 1)))
PYTHON
bytes=$(du -sb "$folder" | cut -f1)
find "$folder" -name metrics.jsonl -print0 >"$folder/list"
read_all() { xargs -0 -P "$(nproc)" -n 50 cat <"$folder/list" >/dev/null; }
seconds() {
  local begin end
  begin=$(date +%s%N)
  "$@" >/dev/null
  end=$(date +%s%N)
  echo "$begin $end" | awk '{ printf "%.3f", ($2 - $1) / 1e9 }'
}
read_all  # into the page cache
cat_time=$(seconds read_all) best=
for _ in 1 2 3; do
  time=$(seconds "$fleetrun" compare --target=0.8 "$folder"/run-*)
  best=$(printf '%s\n' "$time" ${best:+"$best"} | sort -g | head -n 1)
done
groups=$("$fleetrun" compare --target=0.8 --format=json "$folder"/run-* | grep -c '"settings"')
awk -v runs="$runs" -v lines="$lines" -v gigabytes="$(awk -v b="$bytes" 'BEGIN { printf "%.2f", b / 1e9 }')" -v time="$best" \
  -v cat="$cat_time" -v groups="$groups" 'BEGIN {
  printf "compare: %d runs of %d lines (%s GB, %d groups) in %.2f s: %.2f x cat, %.2f of the limit of 2 s\n",
         runs, lines, gigabytes, groups, time, time / cat, time / 2 }'
