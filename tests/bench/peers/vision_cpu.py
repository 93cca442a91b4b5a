#!/usr/bin/env python3
"""PyTorch's training steps of a network of torchvision or timm on one core: the peer of `scripts/bench.sh cpu_families`.

    vision_cpu.py NETWORK BATCH float32|bfloat16 [LAYOUT...]

SGD with momentum, one made-up batch; bfloat16: under torch.autocast.

Prints "ready", a line that describes the process, and for each line of its input, a
layout ("contiguous" or "channels_last"), the processor seconds of a step in that layout.
"""
import os
import sys
import time

try:
    import torch
    import torchvision
    from vision_networks import make_network
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here")
    sys.exit(0)

network, batch, dtype = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
torch.set_num_interop_threads(1)
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


class Training:
    def __init__(self, layout):
        torch.manual_seed(1)
        self.model = make_network(network).train().to(memory_format=FORMATS[layout])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        self.images = torch.randn((batch, 3, 224, 224)).to(memory_format=FORMATS[layout])
        self.labels = torch.arange(batch) * 61 % 1000

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bfloat16"):
            logits = self.model(self.images)
        loss = torch.nn.functional.cross_entropy(logits.float(), self.labels)
        loss.backward()
        self.optimizer.step()
        loss.item()


layouts = {layout: Training(layout) for layout in sys.argv[4:] or FORMATS}
capability = torch.backends.cpu.get_cpu_capability()
print(f"ready\ntorch {torch.__version__}, torchvision {torchvision.__version__}, {capability}, {torch.get_num_threads()} threads, "
      f"{dtype}, {' and '.join(layouts)}, ONEDNN_MAX_CPU_ISA={os.environ.get('ONEDNN_MAX_CPU_ISA', '')}", flush=True)
for line in sys.stdin:
    training = layouts[line.strip()]
    begin = time.process_time()
    training.step()
    print(f"{time.process_time() - begin:.6f}", flush=True)
