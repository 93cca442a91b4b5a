"""The updates of a model of timm by a rule of PyTorch or timm, for tests/bench/optimizers.py.

Usage: optimizers_torch.py MODEL PEER STEPS
PEER: torch.Adafactor, timm.Adafactor, torch.Muon or timm.Muon. Prints "seconds S parameters N version V": the processor's, the median of the steps.
"""
import statistics
import sys
import time

try:
    import timm.optim
    import torch
except ImportError as error:
    print(error)
    sys.exit(1)


def values_of(count, parameter, size):
    i = torch.arange(count, dtype=torch.int64)
    return size * (((i * 7919 + parameter * 104729 + i * i % 613) % 2017).float() / 1008 - 1)


def optimizers(name, model):
    """Muon takes matrices; AdamW updates the other parameters."""
    library, rule = name.split(".")
    parameters = list(model.named_parameters())
    if rule == "Adafactor":
        adafactor = torch.optim.Adafactor if library == "torch" else timm.optim.Adafactor
        return [adafactor([p for _, p in parameters], lr=0.01)]
    muon = torch.optim.Muon if library == "torch" else timm.optim.Muon
    matrices = [p for name, p in parameters if p.dim() == 2]
    others = [p for name, p in parameters if p.dim() != 2]
    return [muon(matrices, lr=0.01), torch.optim.AdamW(others, lr=0.01)]


model_name, peer, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = timm.create_model(model_name)
with torch.no_grad():
    for i, p in enumerate(model.parameters()):
        p.copy_(values_of(p.numel(), i, 0.1).view_as(p))
        p.grad = values_of(p.numel(), i + 1, 0.01).view_as(p)
used = optimizers(peer, model)
seconds = []
for step in range(steps + 1):
    begin = time.process_time()
    for optimizer in used:
        optimizer.step()
    if step:
        seconds.append(time.process_time() - begin)
version = torch.__version__.split("+")[0] if peer.startswith("torch") else timm.__version__
print(f"seconds {statistics.median(seconds):.6f} parameters {len(list(model.parameters()))} version {version}")
