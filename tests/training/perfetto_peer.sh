#!/usr/bin/env bash
# Reads a file of fleetrun trace, of a job of two ranks, with Perfetto's own code.
# Usage: perfetto_peer.sh FLEETRUN protos|trace_processor. Ends with 77 where Perfetto's code is missing.
#   protos            its Python messages; FLEET_PERFETTO_PYTHON names a python that has them (pip install perfetto)
#   trace_processor   what ui.perfetto.dev runs; FLEET_TRACE_PROCESSOR names it, otherwise trace_processor_shell on the PATH
set -euo pipefail
fleetrun=$1 reader=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
skip() { echo "SKIP: $1"; exit 77; }
failed() { echo "FAILED: $1"; [ ! -f job.out ] || cat job.out; exit 1; }
case $reader in
  protos)
    python=${FLEET_PERFETTO_PYTHON:-python3}
    "$python" -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2' 2>/dev/null ||
      skip "no Perfetto messages for '$python'; FLEET_PERFETTO_PYTHON names a python that has the packages perfetto and protobuf"
    ;;
  trace_processor)
    processor=$(command -v "${FLEET_TRACE_PROCESSOR:-trace_processor_shell}") ||
      skip "no trace_processor_shell; FLEET_TRACE_PROCESSOR names one"
    ;;
  *) echo "unknown reader '$reader'"; exit 2 ;;
esac

folder=$(mktemp -d)
job=
clean() {
  [ -z "$job" ] || { kill "$job" && wait "$job"; } 2>/dev/null || true
  rm -rf "$folder"
}
trap clean EXIT
cd "$folder"
cat >job.json <<'JSON'
{"model": {"name": "lenet", "num_classes": 10},
 "data": {"source": "synthetic", "image": {"channels": 1, "height": 28, "width": 28}, "threads": 1,
          "train": {"samples": 1280}, "test": {"samples": 90}},
 "optimizer": {"name": "momentum"}, "learning_rate": {"name": "constant", "base": 0.01},
 "train": {"epochs": 1000000, "fetch_every": 5, "output": "run"}}
JSON
"$fleetrun" --nproc_per_node=2 --job_id="perfetto_peer.$$" job.json >job.out 2>&1 & job=$!
for ((i = 0; i < 1800; ++i)); do  # until it trains
  [ ! -s run/metrics.jsonl ] || break
  kill -0 "$job" 2>/dev/null || failed "the job has ended"
  sleep 0.1
done
[ -s run/metrics.jsonl ] || failed "the job makes no steps"
"$fleetrun" trace "$job" --steps 10 --output it >said || failed "fleetrun trace: $(cat said)"
activities=$(sed -n 's/.*, \([0-9]*\) activities.*/\1/p' said)

if [ "$reader" = protos ]; then
  "$python" "$here/perfetto_peer.py" it 2 "$activities"
  exit
fi
cat >query.sql <<'SQL'
select 'activities' as what, count(*) as number from slice where category != 'launcher'
union all select 'flows', count(*) from flow
union all select 'mismatched', count(*) from flow join slice a on a.id = flow.slice_out join slice b on b.id = flow.slice_in
  where a.name != b.name or a.track_id = b.track_id
union all select 'errors', ifnull(sum(value), 0) from stats where severity in ('error', 'data_loss');
SQL
"$processor" -q query.sql it >answer || failed "$processor refuses the file"
number() { sed -n "s/^\"\?$1\"\?,\"\?\([0-9]*\)\"\?\$/\1/p" answer; }
cat answer
[ "$(number activities)" = "$activities" ] || failed "$activities activities were recorded"
[ "$(number flows)" -gt 0 ] || failed "no flow joins the ranks"
[ "$(number mismatched)" = 0 ] || failed "flows join slices that are no calls of one collective"
[ "$(number errors)" = 0 ] || failed "the trace processor counts errors"
