#!/usr/bin/env python3
"""Generates tests/golden/text/<case>.safetensors: logits, losses and gradients of transformers that this project's language models must
reproduce, and tests/golden/text/configs_<version>.json, the config.json of each family as that version of transformers writes it.

    python3 scripts/make_golden_language_models.py             # with torch, transformers and safetensors
    python3 scripts/make_golden_language_models.py --configs   # the configurations only: run it with transformers 4.57 and 5.24

No weights are stored: every tensor is derived from its name, as in scripts/make_golden.py (tests/golden/golden.h). Token i of row b is
splitmix64(FNV-1a("tokens") + b * S + i) mod vocab_size. PyTorch computes in float64; the stored values are rounded to float32.
Metadata: config, batch, length, loss, losses (before each of 20 steps of AdamW: learning rate 0.001, decay 0.1, epsilon 1e-6).
"""
import argparse
import json
import os
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--configs", action="store_true")
parser.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "text"))
options = parser.parse_args()

try:
    import numpy
    import torch
    import transformers
    from safetensors.numpy import save_file
    from transformers import AutoConfig, AutoModelForCausalLM

    from golden_tensors import draws, tensor
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch transformers safetensors)")
    sys.exit(0)

LLAMA = dict(model_type="llama", vocab_size=37, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=8, rms_norm_eps=1e-5)
CASES = {  # name: (config, batch, length)
    "gpt2": (dict(model_type="gpt2", vocab_size=37, n_embd=24, n_head=4, n_layer=2, n_inner=20, n_positions=16,
                  resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, scale_attn_by_inverse_layer_idx=True), 2, 11),
    "llama_rope": (dict(LLAMA, attention_bias=True, mlp_bias=True, max_position_embeddings=512,
                        rope_parameters=dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0,
                                             high_freq_factor=4.0, original_max_position_embeddings=64)), 1, 300),
    "llama_tied": (dict(LLAMA, num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=True, pad_token_id=2,
                        max_position_embeddings=32, hidden_act="gelu_pytorch_tanh"), 2, 13),
    "llama_yarn": (dict(LLAMA, num_hidden_layers=1, max_position_embeddings=128,
                        rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, mscale=0.7, mscale_all_dim=0.3,
                                             original_max_position_embeddings=32)), 1, 70),
    "mistral": (dict(LLAMA, model_type="mistral", head_dim=6, sliding_window=5, max_position_embeddings=32,
                     rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0)), 2, 13),
    "qwen2": (dict(LLAMA, model_type="qwen2", num_hidden_layers=3, use_sliding_window=True, sliding_window=4,
                   max_window_layers=1, max_position_embeddings=32), 2, 13),
    "qwen3": (dict(LLAMA, model_type="qwen3", head_dim=16, tie_word_embeddings=True, max_position_embeddings=32), 2, 13),
}
del CASES["qwen2"][0]["head_dim"]


def model_of(config):
    config = dict(config)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(config.pop("model_type"), **config), attn_implementation="eager")
    model = model.double().train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensor(name, tuple(parameter.shape)).double())
    # Tables of rope are computed in float32; the reference is exact.
    return model


def generate(name, config, batch, length):
    model = model_of(config)
    ids = torch.from_numpy((draws("tokens", batch * length) % numpy.uint64(config["vocab_size"])).astype(numpy.int64)).view(batch, length)
    result = model(input_ids=ids, labels=ids)
    result.loss.backward()
    tensors = {"logits": result.logits.detach()}
    for parameter_name, parameter in model.named_parameters():
        tensors["gradient." + parameter_name] = parameter.grad
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.1, eps=1e-6)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        model.config.save_pretrained(folder)
        saved = json.load(open(os.path.join(folder, "config.json")))
    metadata = {"config": json.dumps(saved), "batch": str(batch), "length": str(length), "losses": json.dumps(losses)}
    arrays = {key: value.float().numpy() for key, value in tensors.items()}
    save_file(arrays, os.path.join(options.out, name + ".safetensors"), metadata=metadata)
    print(name, losses[0], losses[-1], sum(value.size for value in arrays.values()) * 4, "bytes")


def write_configs():
    configs = {}
    names = {"gpt2": "GPT2LMHeadModel", "bert": "BertForPreTraining", "roberta": "RobertaForMaskedLM",
             "distilbert": "DistilBertForMaskedLM"}
    for family in ("gpt2", "llama", "mistral", "qwen2", "qwen3", "bert", "roberta", "distilbert"):
        config = AutoConfig.for_model(family)
        config.architectures = [names.get(family, family.capitalize() + "ForCausalLM")]
        with tempfile.TemporaryDirectory() as folder:
            config.save_pretrained(folder)
            saved = json.load(open(os.path.join(folder, "config.json")))
        # Fields that only differ from transformers' defaults are saved: to_dict() has all of them.
        configs[family] = {**config.to_dict(), **saved}
    version = ".".join(transformers.__version__.split(".")[:2])
    with open(os.path.join(options.out, f"configs_{version}.json"), "w") as file:
        json.dump(configs, file, indent=1, sort_keys=True)
        file.write("\n")


os.makedirs(options.out, exist_ok=True)
transformers.logging.set_verbosity_error()
write_configs()
if not options.configs:
    for case, arguments in CASES.items():
        generate(case, *arguments)
