#!/usr/bin/env python3
"""Generates tests/golden/text_ops.json: values and gradients of PyTorch and transformers for operations of text models.

    python3 scripts/make_golden_text_ops.py        # with torch and transformers 5

Element i of the tensor NAME is 2 k / 2^24 - 1 with k = splitmix64(FNV-1a(NAME) + i) >> 40, in [-1, 1), exact in float32
and rounded to the case's type; "scale", "bias" and "wide" are 1 + u / 4, u / 4 and 6 u. tests/engine/ops/golden_text_ops_test.cc
makes the same tensors. Every case has the operation's attributes, its inputs (name and shape, or integers), its outputs,
and for the seeds "seed0", "seed1", ... of the floating outputs the gradients of its inputs. Values in bfloat16 are exact.
"""
import json
import os
import sys

from golden_draws import MASK, fnv1a, splitmix64

try:
    import torch
    from torch.nn import functional
    from transformers import LlamaConfig
    from transformers.activations import ACT2FN
    from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding, apply_rotary_pos_emb
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch transformers)")
    sys.exit(0)


def tensor(name, shape, dtype=torch.float32):
    count = torch.Size(shape).numel()
    drawn = [(splitmix64((fnv1a(name) + i) & MASK) >> 40) * 2 / 2**24 - 1 for i in range(count)]
    values = torch.tensor(drawn, dtype=torch.float32).reshape(shape)
    if name == "scale":
        values = 1 + values / 4
    if name == "bias":
        values = values / 4
    if name == "wide":
        values = values * 6
    return values.to(dtype)


def stored(value):
    if value.dtype == torch.bfloat16:
        return value.float().flatten().tolist()
    return [float(f"{x:.9g}") for x in value.detach().flatten().tolist()]


def case(operation, attributes, inputs, function, dtype=torch.float32, differentiated=None):
    """inputs: (name, shape) or (name, shape, integers). function returns the outputs in the order of the operation's."""
    tensors, described = [], []
    for name, shape, *integers in inputs:
        if integers:
            tensors.append(torch.tensor(integers[0], dtype=torch.int64).reshape(shape))
            described.append({"name": name, "shape": shape, "values": integers[0]})
            continue
        kept = torch.float32 if name in ("scale", "bias", "cos", "sin") else dtype
        made = tensor(name, shape, dtype).to(kept).requires_grad_(differentiated is None or name in differentiated)
        tensors.append(made)
        described.append({"name": name, "shape": shape, "dtype": str(kept).split(".")[-1]})
    outputs = function(*tensors)
    gradients = {}
    if outputs[0].requires_grad:
        torch.autograd.backward(outputs, [tensor(f"seed{i}", y.shape, y.dtype) for i, y in enumerate(outputs)])
        gradients = {d["name"]: stored(t.grad) for d, t in zip(described, tensors) if t.grad is not None}
    return {"operation": operation, "attributes": attributes, "inputs": described,
            "dtype": str(dtype).split(".")[-1], "outputs": [stored(y) for y in outputs], "gradients": gradients}


def rms_norm(x, scale, epsilon):
    norm = LlamaRMSNorm(x.shape[-1], eps=epsilon)
    return torch.func.functional_call(norm, {"weight": scale.to(x.dtype)}, (x,))


def add_rms_norm(x, residual, scale):
    total = x + residual
    return rms_norm(total, scale, 1e-5), total


def add_layer_norm(x, residual, scale, bias):
    total = x + residual
    return functional.layer_norm(total, x.shape[-1:], scale.to(x.dtype), bias.to(x.dtype), 1e-5), total


def gated(activation):
    def of(x):
        gate, up = x.chunk(2, dim=-1)
        return (activation(gate) * up,)
    return of


ROPES = [
    {"rope_type": "default", "rope_theta": 10000.0},
    {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
    {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 64},
    {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64},
    {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "original_max_position_embeddings": 4096,
     "beta_fast": 24.0, "beta_slow": 2.0, "mscale": 1.0, "mscale_all_dim": 0.7, "truncate": False},
    {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64,
     "attention_factor": 1.25},
]
DYNAMIC_LENGTH = 64  # max_position_embeddings


def rope_cases():
    size = 16
    for parameters in ROPES:
        length = DYNAMIC_LENGTH if parameters["rope_type"] == "dynamic" else 131072
        for positions in ([[0, 1, 2, 5, 31, 62]], [[3, 64, 99, 255, 299, 1021]]):
            config = LlamaConfig(hidden_size=4 * size, num_attention_heads=4, head_dim=size,
                                 max_position_embeddings=length, rope_parameters=dict(parameters))
            rotary = LlamaRotaryEmbedding(config)
            attributes = {"type" if k == "rope_type" else "theta" if k == "rope_theta" else k: v
                          for k, v in parameters.items()}
            attributes["dim"] = size
            if parameters["rope_type"] == "dynamic":
                attributes["original_max_position_embeddings"] = DYNAMIC_LENGTH

            def table(ids, rotary=rotary):
                cos, sin = rotary(torch.zeros(1, dtype=torch.float32), ids)
                return cos[..., :size // 2], sin[..., :size // 2]

            yield case("rope_table", attributes, [("position_ids", [1, 6], positions[0])], table)


def rope(q, cos, sin):
    turned, _ = apply_rotary_pos_emb(q.transpose(1, 2), q.transpose(1, 2), torch.cat([cos, cos], -1),
                                     torch.cat([sin, sin], -1))
    return (turned.transpose(1, 2),)


def gelu_cases():
    for approximate in (False, True):
        form = "tanh" if approximate else "none"
        for dtype in (torch.float32, torch.bfloat16):
            yield case("gelu", {"approximate": approximate}, [("wide", [5, 13])],
                       lambda x, form=form: (functional.gelu(x, approximate=form),), dtype)
        yield case("geglu", {"approximate": approximate}, [("wide", [2, 3, 22])],
                   gated(lambda gate, form=form: functional.gelu(gate, approximate=form)))


def cases():
    for dtype in (torch.float32, torch.bfloat16):
        yield case("rms_norm", {"epsilon": 1e-6}, [("x", [6, 96]), ("scale", [96])],
                   lambda x, scale: (rms_norm(x, scale, 1e-6),), dtype)
        yield case("add_rms_norm", {"epsilon": 1e-5}, [("x", [2, 3, 40]), ("residual", [2, 3, 40]), ("scale", [40])],
                   add_rms_norm, dtype)
    yield case("add_layer_norm", {"epsilon": 1e-5},
               [("x", [2, 3, 40]), ("residual", [2, 3, 40]), ("scale", [40]), ("bias", [40])], add_layer_norm)
    ids = [3, 0, 10, 3, 7, 0, 3, 2]
    for padding in (-1, 3):
        yield case("embedding", {"padding_idx": padding}, [("ids", [2, 4], ids), ("weight", [11, 6])],
                   lambda i, w, p=padding: (functional.embedding(i, w, padding_idx=p if p >= 0 else None),))
    yield case("swiglu", {}, [("wide", [2, 3, 22])], gated(ACT2FN["silu"]))
    yield from gelu_cases()
    yield case("rope", {}, [("q", [2, 5, 3, 8]), ("cos", [2, 5, 4]), ("sin", [2, 5, 4])], rope, differentiated=("q",))
    yield from rope_cases()


def main():
    out = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "text_ops.json")
    with open(out, "w") as file:
        lines = [json.dumps(one) for one in cases()]
        file.write('{"cases": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{out}: {len(lines)} cases")


main()
