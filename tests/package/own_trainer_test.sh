#!/usr/bin/env bash
# What `cmake --install` puts down is enough to write a trainer: the examples are built out of the tree against it and trained
# by two ranks; a checkpoint of one is resumed.
#
#   tests/package/own_trainer_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
for program in bin/fleetrun bin/fleet-worker lib/libfleetrun.so share/fleetrun.1; do
  [ -e "$build/$program" ] || { echo "SKIPPED: $build/$program is not built"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
quietly() { "$@" >"$folder/output" 2>&1 || { tail -n 40 "$folder/output"; fail "$*"; }; }
prints() { grep -q -- "$1" "$folder/output" || { cat "$folder/output"; fail "not printed: $1"; }; }

prefix=$folder/prefix
quietly cmake --install "$build" --component runtime --strip --prefix "$prefix"
quietly cmake --install "$build" --component development --strip --prefix "$prefix"
cp -r "$prefix/share/fleetrun/examples" "$folder/trainer"
quietly cmake -S "$folder/trainer" -B "$folder/trainer/build" -DCMAKE_PREFIX_PATH="$prefix"
grep -q "fleetrun_DIR:PATH=$prefix/" "$folder/trainer/build/CMakeCache.txt" || fail "another fleetrun was found"
quietly cmake --build "$folder/trainer/build" -j 2
# Nothing of the tree is on their search paths.
! grep -rqF "$root" "$folder/trainer/build" --include='*.make' --include='*.d' || fail "a file of the source tree was used"

cd "$folder/trainer/build"
train() { quietly timeout 200 "$prefix/bin/fleetrun" --nproc_per_node=2 --log_dir="$folder/log" "$@"; }
train ./example_collective --steps=2
prints '^worker_index: 0, step1 cost = [0-9.]*, speed: [0-9.]*$'
for line in 'amp: true' 'nccl_comm_num: 2' '  init_loss_scaling: 128' '  decr_ratio: 0.5' '  fuse_bn_act_ops: true' '  num_threads: 3'; do
  grep -qx -- "$line" dist_strategy.prototxt || { cat dist_strategy.prototxt; fail "dist_strategy.prototxt has no line '$line'"; }
done
train ./example_collective --steps=2 --fetch_every=2
prints '^worker_index: 0, step1 cost'
! grep -q 'step0 cost' "$folder/output" || fail "a step that was not fetched was printed"

train ./train_fleet_op_fusion --steps=1
prints 'Currently, fuse_broadcast_ops only works under Reduce mode.'
prints 'Find momentum operators : 161, and 161 for dense gradients.'
prints 'Find all_reduce operators: 161.*the number of all_reduce ops is 6\.'
prints '^\[Epoch 0, batch 0\] loss: [0-9.]*, acc1: [0-9.]*, acc5: [0-9.]*$'

printf 'gradient_merge: true\ngradient_merge_configs { k_steps: 2 }\n' >merge.prototxt
train ./own_network --save="$folder/saved" --strategy=merge.prototxt
prints "^saved $folder/saved/step_00000060"
prints 'gradient_merge: parameters are updated every 2 steps'
train ./own_network --resume="$folder/saved" --strategy=merge.prototxt --steps=20
prints '^worker_index: 0, step79 cost = 0\.[01]'

# Two servers make the updates of two trainers, with the bits of collective training.
served() { quietly timeout 200 "$prefix/bin/fleetrun" --server_num=2 --worker_num=2 --log_dir="$folder/log" ./train_parameter_servers "$@"; }
served --steps=2 --save="$folder/served"
grep -q 'holds .* blocks' "$folder/log/serverlog.1" || fail "server 1 holds nothing"
served --steps=4 --save="$folder/served" --resume="$folder/served"
train ./train_parameter_servers --steps=4 --save="$folder/collective"
for file in model.safetensors optimizer.safetensors; do
  cmp "$folder"/{served,collective}/step_00000004/$file || fail "$file differs from that of collective training"
done
# In async and geo each trainer goes its own way; trainer 0 saves, and a later run goes on.
for mode in async geo; do
  served --mode=$mode --steps=3 --save="$folder/$mode"
  prints 'trainer 0, step 3: loss [0-9.]*$'
  grep -q "parameter servers: mode $mode" "$folder/output" || fail "the mode is not $mode"
  served --mode=$mode --steps=5 --resume="$folder/$mode"
  prints 'trainer 0, step 5: loss [0-9.]*$'
  ! grep -q 'step 3: loss' "$folder/output" || fail "$mode began again"
done

# A table on the servers: it is saved, shrunk, and a later run has the bits of one without a break.
tables() { quietly timeout 200 "$prefix/bin/fleetrun" --server_num=2 --worker_num=2 --log_dir="$folder/log" ./train_tables "$@"; }
rows_of() { "$prefix/bin/fleetrun" table "$1/tables" -o - 2>/dev/null; }
tables --steps=8 --save="$folder/tables"
grep -q 'table embedding: .* removed (.* by age' "$folder/log/serverlog.0" || fail "nothing was shrunk"
tables --steps=4 --save="$folder/half"
tables --steps=8 --resume="$folder/half" --save="$folder/half"
cmp "$folder"/{tables,half}/step_00000008/model.safetensors || fail "a resumed run differs in dense parameters"
rows_of "$folder/tables/step_00000008" >"$folder/rows"
[ "$(wc -l <"$folder/rows")" -gt 20 ] || fail "the table has too few rows"
rows_of "$folder/half/step_00000008" | cmp - "$folder/rows" || fail "a resumed run has other rows"

# A mistake of the program is a line and exit code 2.
if timeout 60 ./own_network --strategy="$folder/nowhere.prototxt" 2>"$folder/output"; then fail "a missing file was not noticed"; fi
prints 'own_network: .*nowhere.prototxt'
for mistake in --setps=5 --steps=five steps; do
  code=0
  timeout 60 ./own_network "$mistake" 2>"$folder/output" || code=$?
  [ $code = 2 ] || fail "$mistake ended with $code"
  prints "own_network: .*$mistake\|own_network: there is no argument --setps"
done
# Alone it is a job of one rank.
quietly timeout 100 ./own_network --steps=5
prints '^worker_index: 0, step4 cost'
echo "ok: $(find "$prefix/include" -name '*.h' | wc -l) headers, libfleetrun.so $(stat -Lc %s "$prefix/lib/libfleetrun.so") bytes"
