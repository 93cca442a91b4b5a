#!/usr/bin/env python3
"""Times of PyTorch's scaled_dot_product_attention on the CPU for tests/bench/attention.sh: prints "forward MS gradient MS"."""
import argparse
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tokens", type=int, required=True)
parser.add_argument("--heads", type=int, required=True)
parser.add_argument("--kv_heads", type=int, required=True)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--causal", action="store_true")
options = parser.parse_args()

try:
    import torch
    from torch.nn import functional
except ImportError:
    print("SKIP: torch is not installed here")
    sys.exit(0)

torch.set_num_threads(1)
dtype = torch.bfloat16 if options.bf16 else torch.float32
batch = max(1, 1024 // options.tokens)


def heads(count):
    return torch.randn(batch, options.tokens, count, options.size, dtype=dtype).transpose(1, 2)


q, k, v = (heads(count).requires_grad_() for count in (options.heads, options.kv_heads, options.kv_heads))
dy = heads(options.heads)
# Debian's 1.13 and others before 2.5 have no enable_gqa.
grouped = {"enable_gqa": True} if options.heads != options.kv_heads else {}


def attention():
    return functional.scaled_dot_product_attention(q, k, v, is_causal=options.causal, **grouped)


times = [[], []]
for round in range(options.rounds + 1):  # the first warms up
    begin = time.perf_counter()
    y = attention()
    middle = time.perf_counter()
    torch.autograd.grad(y, (q, k, v), dy)
    end = time.perf_counter()
    if round:
        times[0].append(middle - begin)
        times[1].append(end - middle)
print(f"torch {torch.__version__} forward {statistics.median(times[0]) * 1e3:.3f} gradient {statistics.median(times[1]) * 1e3:.3f}")
