#!/usr/bin/env python3
"""Generates tests/golden/torch_*.pth: small files of torch.save() that tests/engine/train/torch_file_test.cc reads.

    python3 scripts/make_torch_files.py [FOLDER]
"""
import argparse
import os
import sys

import torch
from collections import OrderedDict

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "tests", "golden")


def save(name, value, **how):
    torch.save(value, os.path.join(folder, f"torch_{name}.pth"), **how)


def ramp(*shape):
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float32) / 4 - 1).reshape(shape)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 3, 3)
        self.bn = torch.nn.BatchNorm2d(3)
        self.fc = torch.nn.Linear(5, 4)


net = Net()
with torch.no_grad():
    for tensor in net.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_(ramp(*tensor.shape))
save("zip", net.state_dict())
save("legacy", net.state_dict(), _use_new_zipfile_serialization=False)
optimizer = torch.optim.Adam(net.parameters())
sum(parameter.sum() for parameter in net.parameters()).backward()
state = OrderedDict((k, v.clone()) for k, v in net.state_dict().items())
optimizer.step()
save("training", {"epoch": 3, "best": 0.5, "state_dict": state, "optimizer": optimizer.state_dict(), "arch": "net"})
base = ramp(6, 4)
save("views", {"whole": base, "transposed": base.t(), "row": base[2], "column": base[:, 1], "scalar": torch.tensor(2.5),
               "parameter": torch.nn.Parameter(ramp(2)), "half": ramp(3).half(), "bfloat16": ramp(3).bfloat16(),
               "double": ramp(3).double(), "long": torch.tensor([1, -2, 3]), "empty": torch.empty(0, 3)})
# As timm's training saves: its options are an argparse.Namespace.
options = argparse.Namespace(model="resnet18", num_classes=4, mean=[0.5, 0.25, 0.125], std=None, crop_pct=0.875, img_size=96,
                             interpolation="bicubic", amp=False)
save("timm", {"epoch": 3, "arch": "resnet18", "args": options, "version": 2, "metric": 71.5, "state_dict": {"fc.weight": ramp(4, 5)},
              "state_dict_ema": {"fc.weight": ramp(4, 5) + 1}})
save("module", net)
