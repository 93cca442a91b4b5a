#!/usr/bin/env bash
# Follows the pages of docs/contributing on a throw-away copy of the sources: adds one of each kind, builds it, runs its test.
#
#   tests/scripts/recipes_test.sh BUILD_DIR
# The copy is an overlay over the source folder in a mount namespace of its own, so that paths and times stay and only new files
# are compiled. 77: this system does not allow that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(realpath "${1:?usage: recipes_test.sh BUILD_DIR}")
root=$PWD

skip() { echo "SKIP: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

if [ -z "${RECIPES_COPY:-}" ]; then
  case $build/ in "$root"/*) ;; *) skip "the build folder is not below the source folder" ;; esac
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir "$scratch/changes" "$scratch/work"
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(--map-root-user)
  overlay() { unshare --mount "${as_root[@]}" bash -c 'mount -t overlay overlay -o "$0" "$1" && shift && cd . && exec "$@"' "$@"; }
  options=lowerdir=$root,upperdir=$scratch/changes,workdir=$scratch/work
  overlay "$options" "$root" true 2>/dev/null || skip "no overlay of a folder in a mount namespace of its own"
  RECIPES_COPY=1 overlay "$options" "$root" bash "$root/tests/scripts/recipes_test.sh" "$build"
  exit
fi

pages=docs/contributing
targets=()  # to build
tests=()    # "TARGET FILTER"
recipe() { targets+=("$1"); tests+=("$1 $2"); }

# new_files PAGE OLD NEW: copies the files of the page's tables whose path has OLD, and which the page calls new or does not say to be
# changed, under the name NEW. Whatever the page does not list is missing then.
new_files() {
  local page=$pages/$1.md old=$2 new=$3 path copy found=0
  while read -r path; do
    copy=${path//$old/$new}
    [ -e "$path" ] || fail "$page lists $path, which does not exist"
    [ ! -e "$copy" ] || continue
    sed -e "s/$old/$new/g" -e "s/$(camel "$old")/$(camel "$new")/g" "$path" >"$copy"
    found=$((found + 1))
  done < <(sed -nE 's/^\| `([^`]+)`.*/\1/p' "$page" | grep -E "(^|[/_])${old}[._]")
  [ "$found" -gt 0 ] || fail "$page lists no file of '$old'"
  echo "$page: $found new files for '$new'"
}
camel() { sed -E 's/(^|_)([a-z0-9])/\U\2/g' <<<"$1"; }

# code_blocks PAGE: writes each code block below a heading "## 1. Title: `PATH`" to that file.
code_blocks() {
  awk '/^## .*: `[^`]+`$/ { path = $0; sub(/^[^`]*`/, "", path); sub(/`$/, "", path) }
       /^## / && !/: `[^`]+`$/ { path = "" }
       /^```cpp$/ && path != "" && !(path in done) { writing = 1; done[path] = 1; next }
       /^```$/ { writing = 0 }
       writing { print > path }' "$pages/$1.md"
}

# An operation: the four files of the page, as they stand there.
code_blocks op
while read -r path; do
  [ -s "$path" ] || fail "$pages/op.md lists $path, but has no code for it"
done < <(sed -nE 's/^\| `([^`]+)`.*/\1/p' $pages/op.md)
recipe ops_tests 'Softplus*'
recipe ops_emulated_tests 'Softplus*'

new_files optimizer lion recipe_rule
recipe optim_tests 'RecipeRule*'
recipe optim_emulated_tests 'RecipeRule*'

new_files pass fuse_relu_depthwise_conv recipe_pass
# Its switch: a field of our own, as the page says.
sed -i '/^message BuildStrategy {/a\  optional bool recipe_pass = 1999 [default = false, (own) = true];' proto/strategy.proto
recipe passes_tests 'RecipePass*'

# The other kinds have their tests in a file of their module: the sources are built, and the program knows the name.
new_files model lenet recipe_net
new_files source synthetic recipe
new_files source flip recipe_flip
# Its member of CropGeometry keeps its name.
sed -i 's/order = 20/order = 21/; s/p\.recipe_flip/p.flip/' lib/engine/data/augment_recipe_flip.cc
targets+=(fleet-worker)

new_files dialect jax recipe
targets+=(fleetrun)

log=$(mktemp)
cmake --build "$build" --target "${targets[@]}" >"$log" 2>&1 || {
  grep -E 'error|FAILED' -A5 "$log" | head -n 60
  fail "the build of the recipes"
}
for test in "${tests[@]}"; do
  program=$build/bin/${test% *}
  "$program" --gtest_filter="${test#* }" --gtest_brief=1 >"$log" 2>&1 || { tail -n 40 "$log"; fail "$test"; }
  grep -qE '^\[  PASSED  \] [1-9]' "$log" || { tail -n 20 "$log"; fail "$test: it ran no test"; }
  echo "$test: $(grep -oE '[0-9]+ tests?' <<<"$(grep PASSED "$log")") passed"
done

cat >"$log" <<'JOB'
{"model": {"name": "recipe_net"}, "data": {"source": "recipe", "batch_size": 4, "train": {"samples": 8}, "augment": {"recipe_flip": true}},
 "optimizer": {"name": "recipe_rule"}, "train": {"epochs": 1}}
JOB
folder=$(mktemp -d)
(cd "$folder" && "$build/bin/fleet-worker" "$log") >"$folder/console" 2>&1 || { tail -n 20 "$folder/console"; fail "a job of the new kinds"; }
grep -q 'trained after step 2' "$folder/console" || fail "a job of the new kinds did not train"
echo "a job with the new model, source, augmentation and optimizer trained"
"$build/bin/fleetrun" --dry_run --dialect=recipe true >"$log" 2>&1 || { cat "$log"; fail "a job with the new dialect"; }
echo "fleetrun knows the new dialect"
rm -rf "$folder" "$log"
