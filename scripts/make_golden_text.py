#!/usr/bin/env python3
"""Writes tests/golden/text: small tokenizers that Hugging Face's library trained, and what it encodes, decodes and splits with
them. tests/engine/text compares.

    python3 scripts/make_golden_text.py [FOLDER]    # needs: pip install tokenizers==0.23.3
"""
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

here = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "text")
folder = sys.argv[1] if len(sys.argv) > 1 else here
os.makedirs(folder, exist_ok=True)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)"
          r"|\s+")
CORPUS = [
    "The quick brown fox jumps over the lazy dog. It's the dog's day, isn't it? I'LL say we've won 1234567 times!\n",
    "Tokenizers turn text into numbers; the numbers train the model.\n\n    def main(argc, argv):\n        return argc[0]\n",
    "Größe, naïve café, İstanbul, ΑΣ ΣΟΦΟΣ, Привет мир, việc làm, 日本語のテキスト, 中文文本，你好。 한국어 텍스트 नमस्ते दुनिया مرحبا\n",
    "The model reads the text, the text trains the model, and the numbers are the tokens of the text.  Twice  spaced.\n",
] * 3
TEXTS = [
    "", " ", "\n", "the text", " the text", "The  quick\tbrown   fox", "I'LL say it's the dog's 'S 'ſ x'K", "1234567 and ½ ² Ⅷ ①",
    "trailing spaces   ", "   leading", "line\r\nline\n\n\n  indented\n", "naïve cafe\u0301 e\u0301\u0323 \u212b \ufb01 ẞ", "ΑΣ ΣΟΦΟΣ İ",
    "việc làm", "日本語のテキスト，中文。", "한국어 각", "नमस्ते", "👩\u200d👩\u200d👧 🇩🇪", "a\u00a0b\u2003c\u3000d\u2028e",
    "<s>the</s> text", "x <special> y<special>z", "the special word, specials", "[CLS] a [MASK]  b [SEP]", "\u0000\u0001\ufffd\u200b",
    "foo_bar --- !!! (a) {b} ~`@#$%^&*", "unknown: \U0001f99a\u1f00", "x" * 120, " " * 40, "\u166d\U000111c9\u2e52 \u0301",
    "a▁b ▁ c", "\U00010d50\ua7ce\u1c89", "\U00011de0\U00011de11",
]


def trained(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def bpe(size=420, specials=("<s>", "</s>"), alphabet=None, **options):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                               initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet, **options)


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    trained(t, bpe())
    t.add_tokens([AddedToken("special", single_word=True, normalized=True)])
    return t


def llama3(name="ignore"):
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    trained(t, bpe())
    # A token that no merge makes: only ignore_merges finds it.
    data = json.loads(t.to_str())
    data["model"]["vocab"]["Ġquick" if "Ġquick" not in data["model"]["vocab"] else "Ġjumps"] = len(data["model"]["vocab"])
    t = Tokenizer.from_str(json.dumps(data))
    t.add_special_tokens([AddedToken("<special>", lstrip=True, rstrip=True, normalized=False)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 0)])])
    return t


def qwen2():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3.replace("{1,3}", "")), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return trained(t, bpe())


def smollm():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=True)])
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return trained(t, bpe())


def llama2():
    t = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trained(t, bpe(560, specials, [], limit_alphabet=90))
    data = json.loads(t.to_str())
    data["pre_tokenizer"] = None
    data["added_tokens"] = [a for a in data["added_tokens"] if not a["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(data))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return t


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trained(t, trainers.WordPieceTrainer(vocab_size=400, special_tokens=specials, show_progress=False))
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.enable_truncation(24)
    t.enable_padding(length=24, pad_id=0, pad_token="[PAD]")
    return t


def metaspace():
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    trained(t, bpe(300, ["<unk>", "<s>"], []))
    t.enable_truncation(9, direction="left")
    t.enable_padding(direction="left", pad_to_multiple_of=4, pad_id=1, pad_token="<s>")
    return t


def clip():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed",
                                                                    invert=True)])
    t.decoder = decoders.BPEDecoder(suffix="</w>")
    return trained(t, bpe(300, ["<unk>"], [], end_of_word_suffix="</w>"))


def words():
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    return trained(t, trainers.WordLevelTrainer(vocab_size=60, special_tokens=["[UNK]"], show_progress=False))


def write(name, value):
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


def tokenizer_file(name, t):
    cases = []
    for text in TEXTS:
        plain, special = t.encode(text, add_special_tokens=False).ids, t.encode(text).ids
        cases.append({"text": text, "ids": plain, "special": special, "decoded": t.decode(plain, skip_special_tokens=False),
                      "skipped": t.decode(special, skip_special_tokens=True)})
    write(name, {"tokenizer": json.loads(t.to_str()), "size": t.get_vocab_size(), "cases": cases})


def parts_file():
    N, P = normalizers, pre_tokenizers
    cases = []
    for value in (N.NFC(), N.NFD(), N.NFKC(), N.NFKD(), N.Lowercase(), N.StripAccents(), N.Strip(), N.Strip(left=False),
                  N.Prepend("▁"), N.Replace("a", "bb"), N.Replace(Regex(r"\s+"), "_"), N.BertNormalizer(),
                  N.BertNormalizer(lowercase=False), N.BertNormalizer(False, False, True, False),
                  N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase()])):
        cases.append({"normalizer": json.loads(value.__getstate__()), "normalized": [value.normalize_str(text) for text in TEXTS]})
    behaviors = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    splits = [P.Split(pattern, behavior, invert) for pattern in ("e", Regex(r"\s"), Regex(r"(?i:the|a)|\d{2,3}|[^\w\s]{1,2}?"))
              for behavior in behaviors for invert in (False, True)]
    for value in splits + [P.WhitespaceSplit(), P.Whitespace(), P.BertPreTokenizer(), P.Punctuation(),
                           P.Punctuation("merged_with_previous"), P.Digits(), P.Digits(individual_digits=True),
                           P.CharDelimiterSplit("e"), P.Metaspace(), P.Metaspace("_", "first", False),
                           P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first")]),
                           P.Split(Regex(r"[\p{Lu}\p{Lt}]+[\p{Ll}\p{M}]*|\P{L}+?\s"), "isolated"),
                           P.Split(Regex(r"\w+(?=[\s.,])|[^\S\n]+|[!-/[:-@]]"), "isolated")]:
        pieces = ["\t".join(piece for piece, _ in value.pre_tokenize_str(text)) for text in TEXTS]
        cases.append({"pre_tokenizer": json.loads(value.__getstate__()), "pieces": pieces})
    write("parts", {"texts": TEXTS, "cases": cases})


for make in (gpt2, llama3, qwen2, smollm, llama2, bert, metaspace, clip, words):
    tokenizer_file(make.__name__, make())
parts_file()
