#!/usr/bin/env python3
"""What tests/bench/tokenize.sh runs."""
import array
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
try:
    import tiktoken
    import tokenizers
    from tiktoken.load import data_gym_to_mergeable_bpe_ranks, load_tiktoken_bpe
except ImportError as error:
    print(f"tokenize: skipped: {error.name} is not installed here")
    sys.exit(0)

ROUNDS = 3
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
folder = os.environ.get("FLEET_TOKENIZERS", "")
program = os.environ.get("BENCH_TOKENIZE", "build/release/bin/bench_tokenize")
if not os.path.exists(os.path.join(folder, "gpt2.json")):
    print("tokenize: skipped: FLEET_TOKENIZERS does not name a folder that scripts/fetch_tokenizers.py made")
    sys.exit(0)
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def default_text():
    parts, size = [], 0
    names = glob.glob("/usr/share/common-licenses/*") + sorted(glob.glob(os.path.dirname(os.__file__) + "/**/*.py", recursive=True))
    for name in names:
        with open(name, encoding="utf-8", errors="ignore") as file:
            parts.append(file.read().replace("\f", ""))
        size += len(parts[-1])
        if size > 12e6:
            break
    return parts


if len(sys.argv) > 1:
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        documents = file.read().split("\f")
else:
    documents = default_text()
documents = [part for part in documents if part]
size = sum(len(part.encode()) for part in documents)


def timed(function):
    start = time.process_time()
    ids = function()
    return size / 1e6 / (time.process_time() - start), ids


def tiktoken_of(name):
    if name == "gpt2":
        ranks = data_gym_to_mergeable_bpe_ranks(os.path.join(folder, "vocab.bpe"), os.path.join(folder, "encoder.json"))
        return tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})
    return tiktoken.Encoding(name, pat_str=LLAMA3, mergeable_ranks=load_tiktoken_bpe(os.path.join(folder, "llama3.tiktoken")),
                             special_tokens={})


def with_tiktoken(encoding):
    ids = array.array("I")
    for part in documents:
        ids.extend(encoding.encode_ordinary(part))
    return ids


def with_hugging_face(tokenizer):
    ids = array.array("I")
    for encoding in tokenizer.encode_batch_fast(documents, add_special_tokens=False):
        ids.extend(encoding.ids)
    return ids


def ours(name, text, out):
    output = subprocess.run([program, os.path.join(folder, name + ".json"), text, out], capture_output=True, text=True, check=True)
    ids = array.array("I")
    with open(out, "rb") as file:
        ids.frombytes(file.read())
    return float(output.stdout.split(",")[1].split()[0]), ids


with tempfile.TemporaryDirectory() as scratch:
    text = os.path.join(scratch, "text")
    with open(text, "w", encoding="utf-8", newline="") as file:
        file.write("\f".join(documents))
    failed = False
    for name in ("gpt2", "llama3"):
        peers = {"tiktoken": (with_tiktoken, tiktoken_of(name)),
                 "tokenizers": (with_hugging_face, tokenizers.Tokenizer.from_file(os.path.join(folder, name + ".json")))}
        rates = {"ours": [], "tiktoken": [], "tokenizers": []}
        for _ in range(ROUNDS):
            rate, expected = ours(name, text, os.path.join(scratch, "ids"))
            rates["ours"].append(rate)
            for peer, (encode, encoder) in peers.items():
                rate, ids = timed(lambda: encode(encoder))
                rates[peer].append(rate)
                if ids != expected:
                    print(f"tokenize: {name}: the ids of {peer} differ")
                    failed = True
        median = {peer: statistics.median(values) for peer, values in rates.items()}
        for peer in peers:
            print(f"tokenize: {name}: ratio {median['ours'] / median[peer]:.2f} (ours {median['ours']:.1f} MB/s a core, "
                  f"{peer} {median[peer]:.2f} MB/s, {size / 1e6:.0f} MB)", flush=True)
    sys.exit(failed)
