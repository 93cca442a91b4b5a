#!/usr/bin/env python3
"""Writes tests/golden/text/encodings.json: pairs of texts, truncation, offsets (as bytes) and word numbers that Hugging Face's
library gives for the tokenizers of tests/golden/text. tests/engine/text/encoding_test.cc compares.

    python3 scripts/make_golden_encodings.py [FOLDER [RANDOM]]    # needs: pip install tokenizers==0.23.3 transformers

RANDOM: so many random texts in place of the fixed ones.
"""
import json
import os
import random
import sys

from tokenizers import Tokenizer
from transformers import BertTokenizer

here = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "text")
folder = sys.argv[1] if len(sys.argv) > 1 else here
NAMES = ("bert", "gpt2", "llama3", "qwen2", "smollm", "llama2", "metaspace", "clip", "words")
TEXTS = [
    "", "the text", " the text ", "The  quick\tbrown fox,", "naïve cafe\u0301 e\u0301\u0323 \u212b \ufb01 Größe ẞ İ\u0307",
    "日本語，中 한국어 각", "🦚 \u200d👩🇩🇪", "a\u00a0b\u2003c\r\n\n d", "x <special> y<special>z <s>the</s>",
    "the special word, specials", "[CLS] a [MASK]  b [SEP]", "\u0001a\ufffd\u200bb\u1f00", "foo_bar --- (a) {b}", "a▁b ▁ c",
    "x" * 101 + " y",
]
PIECES = TEXTS + ["the", " ", "numbers", "'s", "1234", "é", "e\u0301", "\u0323\u0301", "ﬁ", "Ⅷ", "\u3000", "model", "ΑΣ", "\u1100\u1161\u11a8",
                  "각", "\n", "\u0344", "ệ", "\u0f73", "\u0000"]
if len(sys.argv) > 2:
    random.seed(44)
    TEXTS = ["".join(random.choice(PIECES) for _ in range(random.randrange(1, 8))) for _ in range(int(sys.argv[2]))]
TRUNCATIONS = [(12, "longest_first", "right"), (13, "longest_first", "left"), (9, "only_first", "right"), (11, "only_second", "left"),
               (6, "longest_first", "right"), (7, "longest_first", "right")]


def byte_range(text, offsets):
    begin, end = offsets
    return [len(text[:begin].encode()), len(text[:end].encode())]


def numbers(values):
    return " ".join(str(-1 if value is None else value) for value in values)


def case(encoding, texts):
    offsets = [byte_range(texts[number or 0], pair) for number, pair in zip(encoding.sequence_ids, encoding.offsets)]
    value = {"ids": numbers(encoding.ids), "words": numbers(encoding.word_ids),
             "offsets": numbers(value for pair in offsets for value in pair)}
    if len(texts) > 1:
        value |= {"types": numbers(encoding.type_ids), "texts": numbers(encoding.sequence_ids)}
    return value


def cases_of(t):
    t.no_truncation()
    t.no_padding()
    cases = [{"first": number, **case(t.encode(text), [text])} for number, text in enumerate(TEXTS)]
    for number, text in enumerate(TEXTS):
        other = TEXTS[number * 7 % len(TEXTS)]
        length, strategy, direction = TRUNCATIONS[number % len(TRUNCATIONS)]
        if number % 3 == 0:
            t.no_truncation()
        else:
            t.enable_truncation(length, strategy=strategy, direction=direction)
        value = {"first": number, "second": number * 7 % len(TEXTS), "special": number % 5 > 0}
        if number % 3:
            value |= {"most": length, "rule": strategy, "left": direction == "left"}
        try:
            value |= case(t.encode(text, other, add_special_tokens=value["special"]), [text, other])
        except BaseException:  # the text of the rule is too short
            pass
        if direction == "left" and number % 3:
            value.pop("words", None)  # the library counts words from where it stopped
        cases.append(value)
    return cases


def old_bert(lines, **options):
    """What a folder with vocab.txt alone gives."""
    t = BertTokenizer(vocab={line: number for number, line in enumerate(lines)}, **options)
    text = "Größe, naïve 日本 [MASK] The"
    return {"config": options, "text": text, "ids": numbers(t(text)["input_ids"]), "pair": numbers(t(text, "the")["token_type_ids"])}


golden = {}
for name in NAMES:
    with open(os.path.join(here, name + ".json"), encoding="utf-8") as file:
        golden[name] = cases_of(Tokenizer.from_str(json.dumps(json.load(file)["tokenizer"])))
with open(os.path.join(here, "bert.json"), encoding="utf-8") as file:
    vocabulary = json.load(file)["tokenizer"]["model"]["vocab"]
lines = sorted(vocabulary, key=vocabulary.get)
old = [old_bert(lines, do_lower_case=True), old_bert(lines, do_lower_case=False),
       old_bert(lines, do_lower_case=True, strip_accents=False, tokenize_chinese_chars=False)]
with open(os.path.join(folder, "encodings.json"), "w", encoding="utf-8") as file:
    json.dump({"texts": TEXTS, "tokenizers": golden, "vocabulary": old}, file, ensure_ascii=False, separators=(",", ":"))
    file.write("\n")
