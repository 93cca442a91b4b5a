#!/usr/bin/env bash
# The programs of docs/how-to/report_steps.md, as they are printed there, with the real packages. Usage: report_steps.sh FLEETRUN PAGE
# WHICH; ends with 77, saying why, where a package is missing.
set -euo pipefail
fleetrun=$1 page=$2 which=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export CUDA_VISIBLE_DEVICES='' FLEET_RUNTIME_DIR=$folder/run
skip() { echo "SKIP: $*"; exit 77; }
fail() { echo "FAILED: $*"; tail -n 30 ./*.out log/workerlog.* log/metrics.jsonl || true; exit 1; }
need_module() {  # need_module PYTHON MODULE VARIABLE
  command -v "$1" >/dev/null && "$1" -c "import $2" 2>/dev/null || skip "no $2 for '$1'; $3 names a python that has it"
}
# Each program of the page goes into the file that its first line names.
awk '/^```/ { inside = !inside; first = inside; next }
     first { file = $2 ~ /^[a-z_]+\.(py|cc)$/ ? $2 : ""; first = 0 }
     inside && file != "" { print > file }' "$page"

# job RANKS STEP PROGRAM...: the job must have reported this step, as its last one, with a loss, and have a report.
job() {
  local ranks=$1 step=$2; shift 2
  timeout 240 "$fleetrun" --nproc_per_node="$ranks" "$@" >job.out 2>&1 || fail "$* ended with $?"
  grep '"event":"train"' log/metrics.jsonl >train.out || fail "nothing was reported"
  grep -q '"loss":[0-9]' train.out || fail "no loss was reported"
  tail -n 1 train.out | grep -q "\"step\":${step}[,}]" || fail "the last step is not $step"
  grep -q '"event":"summary"' log/metrics.jsonl || fail "there is no summary"
  ! grep -q 'is ignored' job.out || fail "a report is wrong"
  "$fleetrun" report log >report.out || fail "there is no report"
  echo "$which: $(wc -l <train.out) reports"
}

case $which in
  python)
    command -v python3 >/dev/null || skip "no python3"
    # shellcheck disable=SC2016  # it is the rank's variable
    job 2 5 sh -c 'for step in 1 2 3 4 5; do python3 -c "from fleet_steps import report; report(step=$step, loss=0.5)"; done'
    ;;
  cpp)
    command -v c++ >/dev/null || skip "no c++"
    c++ -O0 -o steps steps.cc || fail "steps.cc does not compile"
    job 2 100 ./steps
    ;;
  torch)
    python=${FLEET_PYTHON:-/usr/bin/python3}
    need_module "$python" torch FLEET_PYTHON
    job 2 100 "$python" torch_loop.py
    ;;
  jax)
    python=${FLEET_JAX_PYTHON:-python3}
    need_module "$python" jax FLEET_JAX_PYTHON
    job 2 100 "$python" jax_loop.py
    ;;
  lightning)
    python=${FLEET_LIGHTNING_PYTHON:-python3}
    need_module "$python" lightning.pytorch FLEET_LIGHTNING_PYTHON
    cat >train.py <<'PYTHON'
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning_steps import FleetSteps

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_index):
        loss = self.layer(batch[0]).square().mean()
        self.log("mean/square", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(40, 4)), batch_size=4)
trainer = Trainer(max_epochs=2, log_every_n_steps=5, callbacks=[FleetSteps()], accelerator="cpu", logger=False,
                  enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Model(), data)
PYTHON
    job 1 20 "$python" train.py
    grep -q '"mean/square":[0-9]' train.out || fail "a value of self.log() is missing"
    ;;
  transformers)
    python=${FLEET_TRANSFORMERS_PYTHON:-python3}
    need_module "$python" "transformers, accelerate" FLEET_TRANSFORMERS_PYTHON
    cat >train.py <<'PYTHON'
import torch
from transformers import Trainer, TrainingArguments
from transformers_steps import FleetSteps

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, inputs):
        return {"loss": self.layer(inputs).square().mean()}

data = [{"inputs": torch.ones(4)} for _ in range(40)]
args = TrainingArguments(output_dir="out", num_train_epochs=2, per_device_train_batch_size=4, logging_steps=5, use_cpu=True,
                         report_to=[], save_strategy="no", disable_tqdm=True)
Trainer(model=Model(), args=args, train_dataset=data, callbacks=[FleetSteps()]).train()
PYTHON
    job 1 20 "$python" train.py
    grep -q '"learning_rate":[0-9]' train.out || fail "a value of the log is missing"
    ;;
  *) echo "unknown program $which"; exit 2 ;;
esac
