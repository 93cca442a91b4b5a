"""Tensors by their names, for scripts/make_golden_*.py: tests/golden/golden.h computes the same ones, bit for bit."""
import math

import numpy
import torch

from golden_draws import draws


def tensor(name, shape):
    u = ((draws(name, math.prod(shape)) >> numpy.uint64(40)).astype(numpy.float64) * 2 / 2**24 - 1).astype(numpy.float32)
    if len(shape) >= 2:
        u = u * numpy.float32(math.sqrt(6 / (math.prod(shape) / shape[0])))
    elif name.endswith("weight"):
        u = numpy.float32(1) + u * numpy.float32(0.25)
    else:
        u = u * numpy.float32(0.1)
    return torch.from_numpy(u.reshape(shape))
