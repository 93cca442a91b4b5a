#!/usr/bin/env python3
"""Generates tests/golden/text/minilm.safetensors: hidden states of all-MiniLM-L6-v2, which scripts/fetch_minilm.py fetches, in transformers.

    python3 scripts/make_golden_minilm.py FOLDER     # with torch, transformers and safetensors

Two texts of different lengths, computed in float64. Stored: "hidden", "pooled", and "embedding", the normalised mean over the tokens as
sentence-transformers computes it, every 16th feature, rounded to float32. Metadata: inputs (by name), as in make_golden_encoders.py.
"""
import json
import os
import sys

try:
    import torch
    from safetensors.numpy import save_file
    from transformers import AutoTokenizer, BertModel
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch transformers safetensors)")
    sys.exit(0)

TEXTS = ["The capital of France is Paris.", "Berlin has trams, and they run all night at week-ends."]

if len(sys.argv) != 2:
    sys.exit(__doc__)
folder = sys.argv[1]
out = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "text", "minilm.safetensors")
model = BertModel.from_pretrained(folder, attn_implementation="eager").double().eval()
inputs = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
with torch.no_grad():
    result = model(**inputs)
real = inputs["attention_mask"]
hidden = result.last_hidden_state * real[:, :, None]
mean = hidden.sum(1) / real.sum(1, keepdim=True)
arrays = {"hidden": hidden, "pooled": result.pooler_output, "embedding": torch.nn.functional.normalize(mean, dim=1)}
batch, length = real.shape
ours = {"input_ids": inputs["input_ids"], "token_type_ids": inputs["token_type_ids"], "document_ids": real - 1,
        "position_ids": torch.arange(length).expand(batch, length)}
metadata = {"config": "{}", "losses": "[]", "head": "pooled", "batch": str(batch), "length": str(length),
            "inputs": json.dumps({name: values.tolist() for name, values in ours.items()})}
save_file({name: values[..., ::16].float().contiguous().numpy() for name, values in arrays.items()}, out, metadata=metadata)
print(batch, length, os.path.getsize(out), "bytes")
