#!/usr/bin/env bash
# An unmodified torch program with init_method env:// under fleetrun: torch's store listens on the
# MASTER_PORT that the launcher holds. Usage: torch_peer.sh FLEETRUN
set -euo pipefail
python=${FLEET_PYTHON:-/usr/bin/python3}
if ! "$python" -c "import torch" 2>/dev/null; then
  echo "SKIP: torch is not installed for $python"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >peer.py <<'PYTHON'
import torch
import torch.distributed as dist

dist.init_process_group("gloo", init_method="env://")
value = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)
print("sum", value.item(), flush=True)
dist.barrier()
PYTHON
CUDA_VISIBLE_DEVICES= "$1" --nproc_per_node=3 "$python" peer.py
for rank in 0 1 2; do
  grep -qx "sum 6.0" "log/workerlog.$rank" || { echo "rank $rank:"; cat "log/workerlog.$rank"; exit 1; }
done
echo "torch met on the held port"
