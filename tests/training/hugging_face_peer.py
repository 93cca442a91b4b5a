"""Compares what transformers computes from folders that fleetrun export has written.

  hugging_face_peer.py make FOLDER             writes a config.json of each family, and tokens.bin; prints their names
  hugging_face_peer.py logits OUT FOLDER...    saves the logits of each folder in OUT
  hugging_face_peer.py compare A B             whether two files of logits are equal
  hugging_face_peer.py weights A B             whether two folders have the same weights, in any number of files
"""
import json
import os
import sys

SHARED = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
FAMILIES = {
    "gpt2": {"vocab_size": 96, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "bos_token_id": 1, "eos_token_id": 2},
    "gpt2_untied": {"vocab_size": 96, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128,
                    "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2},
    "llama": {**SHARED, "rope_parameters": LLAMA3, "attention_bias": True, "mlp_bias": True},
    "llama_tied": {**SHARED, "head_dim": 16, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                                       "original_max_position_embeddings": 32}},
    "mistral": {**SHARED, "sliding_window": 8, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}},
    "qwen2": {**SHARED, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1,
              "rope_parameters": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.0}},
    "qwen3": {**SHARED, "head_dim": 16, "tie_word_embeddings": True,
              "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}},
}


def make(folder):
    for name, config in FAMILIES.items():
        os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, name, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"model_type": name.split("_")[0], **config}, file)
    with open(os.path.join(folder, "tokens.bin"), "wb") as file:  # 16 bits each
        file.write(b"".join(((i * i * 7 + i // 3) % 96).to_bytes(2, "little") for i in range(4000)))
    print(*FAMILIES)


def logits(out, folders):
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    ids = torch.randint(0, 96, (2, 40))
    result = {}
    for folder in folders:
        model, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
        wrong = {key: value for key, value in report.items() if value}
        if wrong:
            sys.exit(f"{folder}: {wrong}")
        with torch.no_grad():
            result[os.path.basename(folder)] = model.eval()(ids).logits
    torch.save(result, out)


def compare(first, second):
    import torch
    ours, theirs = torch.load(first), torch.load(second)
    if ours.keys() != theirs.keys() or not ours:
        sys.exit(f"{sorted(ours)} and {sorted(theirs)}")
    for name, values in ours.items():
        if values.std() < 1e-3 or not torch.equal(values, theirs[name]):
            sys.exit(f"{name}: logits differ by {(values - theirs[name]).abs().max()}, deviation {values.std()}")
    print(len(ours), "equal logits")


def weights(first, second):
    import glob

    from safetensors.torch import load_file
    ours, theirs = ({name: tensor for path in glob.glob(folder + "/*.safetensors") for name, tensor in load_file(path).items()}
                    for folder in (first, second))
    same = ours.keys() == theirs.keys() and all(tensor.equal(theirs[name]) for name, tensor in ours.items())
    if not ours or not same:
        sys.exit(f"{first} and {second} have different weights")


{"make": lambda a: make(*a), "logits": lambda a: logits(a[0], a[1:]), "compare": lambda a: compare(*a),
 "weights": lambda a: weights(*a)}[sys.argv[1]](sys.argv[2:])
