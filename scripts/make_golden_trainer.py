#!/usr/bin/env python3
"""Writes tests/golden/text/trainer.json: what Hugging Face's BPE trainer makes of small corpora.

Needs tokenizers (0.23). tests/engine/text/bpe_trainer_test.cc makes the same corpora.
"""
import json
import os
import tempfile

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


class Numbers:
    def __init__(self):
        self.state = 1

    def below(self, most):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % most


def few_letters():
    """Words of two letters: many tokens are made in two ways, many pairs are equally frequent."""
    numbers = Numbers()
    words = []
    for _ in range(800):
        words.append("".join("ab"[numbers.below(2)] for _ in range(1 + numbers.below(14))))
        words.append(" \n"[numbers.below(2)])
    return "".join(words)


def many_scripts():
    starts = [0x20, 0x61, 0xE0, 0x300, 0x430, 0x914, 0x4E00, 0xAC00, 0x1F600]
    numbers = Numbers()
    text = []
    for _ in range(6000):
        text.append(chr(starts[numbers.below(len(starts))] + numbers.below(12)))
        if numbers.below(9) == 0:
            text.append(["\n", "\r\n", "  ", "\t", "'ll", "12345", " ", "\u3000"][numbers.below(8)])
    return "".join(text)


def license_text():
    with open(os.path.join(TOP, "LICENSE"), encoding="utf-8", newline="") as file:
        return file.read()


CORPORA = {"few_letters": few_letters, "many_scripts": many_scripts, "license": license_text}


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def train(corpus, style, vocabulary_size, min_frequency, special_tokens):
    tokenizer = Tokenizer(models.BPE())
    if style == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        pattern = Regex(LLAMA3 if style == "llama3" else QWEN2)
        if style == "qwen2":
            tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(pattern, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size, min_frequency=min_frequency, special_tokens=special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    with tempfile.TemporaryDirectory() as folder:
        text, saved = os.path.join(folder, "corpus.txt"), os.path.join(folder, "tokenizer.json")
        with open(text, "w", encoding="utf-8", newline="") as file:
            file.write(CORPORA[corpus]())
        tokenizer.train([text], trainer)
        tokenizer.save(saved)
        with open(saved, "rb") as file:
            return file.read()


def main():
    end = ["<|endoftext|>"]
    cases = []
    for case in [("few_letters", "gpt2", 500, 0, end), ("few_letters", "gpt2", 2000, 2, ["a", "aa"]),
                 ("many_scripts", "gpt2", 1000, 2, end), ("many_scripts", "llama3", 1000, 2, end),
                 ("many_scripts", "qwen2", 1000, 3, []), ("license", "gpt2", 1500, 2, end),
                 ("license", "llama3", 1000, 5, ["<s>", "\u00e9\n\"\\\x01", "</s>"])]:
        content = train(*case)
        keys = ("corpus", "style", "vocabulary_size", "min_frequency", "special_tokens")
        cases.append(dict(zip(keys, case)) | {"bytes": len(content), "crc32c": crc32c(content)})
    whole = train("license", "qwen2", 270, 2, end).decode()
    path = os.path.join(TOP, "tests/golden/text/trainer.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"cases": cases, "license_qwen2_270": whole}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
