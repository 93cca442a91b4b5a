#!/usr/bin/env bash
# Trains a classifier of your own photographs with two ranks and writes a page about it: the second half of
# scripts/quickstart.sh photos DIR. DIR has a folder per class, or such folders in DIR/train and DIR/test (or DIR/val).
# --weights FILE starts from trained weights, a file or a folder of timm (docs/how-to/fine_tuning.md); without it, a small network learns
# from nothing in about a minute. Passes other arguments on to the training:
# scripts/photos_demo.sh photos --weights resnet18-f37072fd.pth --set train.epochs=2
# With --check it only looks at the folder.
usage="usage: photos DIR [--weights FILE] [options of fleetrun]; DIR has a folder of photographs for each class"
problem() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 2; }
dir='' weights='' check='' options=()
while [ $# -gt 0 ]; do
  case $1 in
    --weights) [ $# -ge 2 ] || problem "--weights needs a file; $usage"; weights=$2; shift ;;
    --weights=*) weights=${1#*=} ;;
    --check) check=yes ;;
    --set) [ $# -ge 2 ] || problem "--set needs KEY=VALUE; $usage"; options+=("$1" "$2"); shift ;;
    -*) options+=("$1") ;;
    *) if [ -n "$dir" ]; then options+=("$1"); else dir=$1; fi ;;
  esac
  shift
done
[ -n "$dir" ] || problem "no folder is named; $usage"
[ -d "$dir" ] || problem "there is no folder '$dir'; $usage"
[ -z "$weights" ] || [ -e "$weights" ] || problem "there are no weights '$weights'; docs/how-to/fine_tuning.md says where to get some"
dir=$(realpath "$dir")
[ -z "$weights" ] || weights=$(realpath "$weights")
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# images BELOW...: how many.
images() {
  find -L "$@" -mindepth 1 -name '.*' -prune -o -type f \( -iname '*.jpg' -o -iname '*.jpeg' -o -iname '*.png' -o -iname '*.webp' -o -iname '*.bmp' -o -iname '*.gif' \
    -o -iname '*.tif' -o -iname '*.tiff' \) -print | wc -l
}
training=$dir/train
[ -d "$training" ] || training=$dir
classes=0 empty=''
for class in "$training"/*/; do
  [ -d "$class" ] || continue
  case $(basename "$class") in  # what data.source=image_folder leaves out
    @eaDir | @__thumb | @Recycle | @Recently-Snapshot | @tmp | '#recycle' | '#snapshot' | '$RECYCLE.BIN' | 'System Volume Information' | __MACOSX | \
      'Network Trash Folder' | 'Temporary Items' | lost+found) continue ;;
  esac
  classes=$((classes + 1))
  [ "$(images "$class")" -gt 0 ] || empty+=" $(basename "$class")"
done
[ "$classes" -gt 0 ] || problem "'$training' has no folders; put the photographs of each class into a folder of their own, such as $training/cat and $training/dog"
[ "$classes" -gt 1 ] || problem "'$training' has one class only ($(basename "$class")); a classifier needs at least two"
[ -z "$empty" ] || problem "folders without a photograph in '$training':$empty; put some into them, or remove them"
count=$(images "$training")
[ "$count" -ge $((2 * classes)) ] || problem "'$training' has $count photographs of $classes classes; each class needs at least two, one of them to test"
[ -z "$check" ] || exit 0

fleetrun=build/release/bin/fleetrun
quoted() {  # as a text in JSON
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}
split='"validation_split": 0.2'
for name in val test; do
  [ "$training" = "$dir" ] || [ ! -d "$dir/$name" ] || split="\"test\": {\"folder\": $(quoted "$dir/$name")}"
done
data="\"source\": \"image_folder\", \"root\": $(quoted "$dir"), \"train\": {\"folder\": $(quoted "$training")}, $split"
job=build/photos/photos.json
mkdir -p build/photos
if [ -n "$weights" ]; then
  cat >"$job" <<JSON
{"checkpoint": {"weights": $(quoted "$weights")},
 "data": {$data},
 "train": {"name": "photos", "evaluate_classes": true}}
JSON
else
  # As many images as two cores train in less than a minute.
  seen=30000 batch=$((count < 512 ? 8 : 32))
  epochs=$((seen / count))
  [ "$epochs" -le 40 ] || epochs=40
  length="\"epochs\": $epochs"
  [ "$epochs" -gt 0 ] || length="\"epochs\": 1, \"max_steps\": $((seen / (2 * batch)))"
  cat >"$job" <<JSON
{"model": {"name": "resnet20", "num_classes": $classes},
 "data": {$data,
          "batch_size": $batch, "image": {"channels": 3, "height": 32, "width": 32}, "cache": "decoded",
          "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
          "augment": {"random_resized_crop": true, "random_resized_crop_scale": [0.5, 1.0], "flip": true}, "eval": {"resize": 32}},
 "optimizer": {"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4},
 "learning_rate": {"name": "cosine", "base": 0.05, "warmup_epochs": 1},
 "train": {"name": "photos", "evaluate_classes": true, $length}}
JSON
fi
run=output/photos/latest
for option in "${options[@]}"; do [[ $option != train.output=* ]] || run=${option#*=}; done
say "$count photographs of $classes classes in $training; the job is $job"
"$fleetrun" --nproc_per_node=2 "$job" "${options[@]}"
"$fleetrun" report "$run"
say "the page with curves, classes and mistakes: $(realpath -m "$run")/report.html"
in_place=
[ "$PWD" = "$OLDPWD" ] || in_place="cd $(printf %q "$PWD") && "
say "predict others: $in_place$fleetrun $job --predict FOLDER"
