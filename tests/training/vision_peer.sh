#!/usr/bin/env bash
# Exports networks of images for timm and torchvision, which load them strictly with equal logits, and reads folders of timm.
# Usage: vision_peer.sh BIN. BIN holds fleetrun and fleet-worker. Ends with 77 where FLEET_TORCH_PYTHON (default: python3) lacks
# torch, timm, torchvision or onnxruntime.
set -euo pipefail
bin=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${FLEET_TORCH_PYTHON:-python3}
code=0
"$python" "$here/vision_peer.py" check || code=$?
[ "$code" = 0 ] || exit "$code"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
command() { "$bin/$1" "${@:2}" >said 2>&1 || { echo "FAILED: $*"; tail -n 20 said; exit 1; }; }
peer() { "$python" "$here/vision_peer.py" "$@" || { echo "FAILED: $*"; exit 1; }; }

# job_of MODEL SIDE [KEYS]: two steps on random images; KEYS are more of the model
job_of() {
  cat >"$1.json" <<JSON
{"model": {"name": "$1", "num_classes": 7${3:+, $3}},
 "data": {"source": "synthetic", "batch_size": 2, "train": {"samples": 4}, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4],
          "interpolation": "bicubic", "image": {"channels": 3, "height": $2, "width": $2}},
 "learning_rate": {"base": 0.001}, "train": {"output": "run_$1", "evaluate_every": 0}}
JSON
}
for case in "resnet18 64 out.pth" "mobilenet_v3_small 64 out.safetensors" "efficientnet_b0 64 -" "convnext_tiny 64 -" \
            "vit_b_32 96 -" 'vit_tiny_patch16_224 32 - "patch": 8' 'swin_t 64 - "window": 4, "window_rule": "timm"'; do
  read -r model side file keys <<<"$case"
  job_of "$model" "$side" "$keys"
  command fleet-worker "$model.json" --device cpu
  command fleetrun export "$model.json" --onnx net.onnx
  command fleetrun export "$model.json" --timm "out_$model"
  [ "$file" = - ] || command fleetrun export "$model.json" --torchvision "$file"
  peer compare "$model" "$side" net.onnx "out_$model" "$file"
done

# Views of images, and what the network looks at.
mkdir photographs
peer photos photographs
predict=(fleet-worker resnet18.json --device cpu --predict photographs --set data.eval.resize=72)
command "${predict[@]}" --set predict.average=ten_crop --set predict.output=ten.npy
command "${predict[@]}" --set predict.cam=maps --set predict.cam_style=map
command "${predict[@]}" --set predict.embedding=features --set predict.output=features.npy
peer views resnet18 out.pth photographs 64 72 ten.npy maps features.npy

# Read: a folder of timm is evaluated with the logits that timm gives.
for case in "resnet18 64" "efficientnet_b0 64" "vit_base_patch32_224 224" "vit_small_patch32_224 96" "swin_tiny_patch4_window7_224 64"; do
  read -r architecture side <<<"$case"
  peer save "$architecture" "timm_$architecture"
  echo "{\"checkpoint\": {\"weights\": \"timm_$architecture\"}, \"train\": {\"name\": \"none\"},
         \"data\": {\"source\": \"image_folder\", \"image\": {\"channels\": 3, \"height\": $side, \"width\": $side}}}" >read.json
  command fleetrun export read.json --onnx read.onnx
  peer timm_logits "timm_$architecture" "$side" read.onnx
done
