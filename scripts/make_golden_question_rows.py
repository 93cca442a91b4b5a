#!/usr/bin/env python3
"""Generates tests/golden/text/question_rows.json: rows of questions and of labelled words, and answers chosen from logits, as
transformers' examples make them (run_qa.py, utils_qa.py, run_ner.py), with a small tokenizer that is part of the file.

    python3 scripts/make_golden_question_rows.py        # with tokenizers and numpy

Logit i of row r is 4 u - 2 with u = draws("logits" + r)[i] >> 40 over 2^24 (scripts/golden_tensors.py): starts, then ends.
"""
import json
import os
import sys

try:
    import numpy
    from tokenizers import Tokenizer

    from golden_tensors import draws
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install tokenizers numpy torch)")
    sys.exit(0)

LENGTH, STRIDE, NULL_THRESHOLD = 20, 4, -3.5
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "mat", "##s", "##ing", "who", "where", "?", ".", ",", "'", "a", "b", "c",
              "##a", "##b", "##c", "cafe", "in", "paris", "199", "##8", "it", "was", "nai", "##ve", "日", "本"]
TOKENIZER = {
    "version": "1.0", "truncation": {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0}, "padding": None,
    "added_tokens": [{"id": i, "content": VOCABULARY[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                      "special": True} for i in range(4)],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                   {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
    "decoder": None,
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {word: i for i, word in enumerate(VOCABULARY)}}}

CONTEXTS = [  # the context; questions with the text of the answer, and which occurrence of it; None: no answer
    ("The cats sat on the mat, sitting on it. Café cats in Paris: it was 1998, the naïve cat was on a mat in 日本.",
     [("Who sat on the mat?", "The cats", 0), ("Where was the naïve cat?", "a mat in 日本", 0), ("where?", "Paris", 0),
      ("who was in the cafe?", None, 0)]),
    ("abc abcs", [("Who?", "abc", 1), ("a?", "b", 0), ("in", "abc abcs", 0)]),
    ("  It was the cat's mat , a b c it was the cat's mat , a b c it was the cat's mat", [("it?", "cat's mat", 2), ("it", "It", 0)]),
]
TAGGED = [  # words, labels
    (["The", "cats", "sat", "in", "Paris", ",", "Café", "naïve", "1998", "abc's", "日本", "xyz", "cats", "sitting", "on", "a", "mat", "."],
     [0, 0, 0, 0, 1, 0, 3, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
    (["it", "was", "a", "cat"], [0, 0, 0, 3]),
]


def squad():
    paragraphs, number = [], 0
    for context, questions in CONTEXTS:
        qas = []
        for question, answer, occurrence in questions:
            start = -1
            for _ in range(occurrence + 1):
                start = context.index(answer, start + 1) if answer else 0
            qas.append({"id": f"q{number}", "question": question, "is_impossible": answer is None,
                        "answers": [{"text": answer, "answer_start": start}] if answer else []})
            number += 1
        paragraphs.append({"context": context, "qas": qas})
    return {"version": "v2.0", "data": [{"title": "test", "paragraphs": paragraphs}]}


def bytes_of(context, at):
    return len(context[:at].encode())


def positions(offsets, sequences, answers):
    """start and end of the first answer, as prepare_train_features() finds them."""
    if not answers:
        return 0, 0
    begin = answers[0]["answer_start"]
    end = begin + len(answers[0]["text"])
    first = sequences.index(1)
    last = len(sequences) - 1 - sequences[::-1].index(1)
    if not (offsets[first][0] <= begin and offsets[last][1] >= end):
        return 0, 0
    top = last
    while first <= top and offsets[first][0] <= begin:
        first += 1
    while offsets[last][1] >= end:
        last -= 1
    return first - 1, last + 1


def best_answers(features, context, may_have_none):
    """postprocess_qa_predictions() for one question, n_best_size 5, max_answer_length 4, null_score_diff_threshold -3.5: the answer,
    and the candidates with their places, scores and probabilities."""
    none, predictions = None, []
    for row, offsets, sequences in features:
        u = 4 * (draws(f"logits{row}", 2 * LENGTH) >> numpy.uint64(40)).astype(numpy.float64) / 2**24 - 2
        starts, ends = u[:LENGTH].astype(numpy.float32), u[LENGTH:].astype(numpy.float32)
        null = float(starts[0]) + float(ends[0])
        none = null if none is None else min(none, null)
        for start in numpy.argsort(starts)[-1:-6:-1].tolist():
            for end in numpy.argsort(ends)[-1:-6:-1].tolist():
                if max(start, end) >= len(sequences) or sequences[start] != 1 or sequences[end] != 1:
                    continue
                if end < start or end - start + 1 > 4:
                    continue
                predictions.append((float(starts[start]) + float(ends[end]), offsets[start][0], offsets[end][1]))
    if may_have_none:
        predictions.append((none, 0, 0))
    predictions = sorted(predictions, key=lambda one: one[0], reverse=True)[:5]
    if may_have_none and not any(end == 0 for _, _, end in predictions):
        predictions.append((none, 0, 0))
    scores = numpy.array([one[0] for one in predictions])
    exponentials = numpy.exp(scores - numpy.max(scores)) if predictions else scores
    probabilities = exponentials / exponentials.sum() if predictions else scores
    candidates = [[context[begin:end], begin, end, score, float(p)] for (score, begin, end), p in zip(predictions, probabilities)]
    best = next((one for one in candidates if one[0]), None)
    if best is None or (may_have_none and none - best[3] > NULL_THRESHOLD):
        return "", candidates
    return best[0], candidates


def question_rows(tokenizer, data):
    rows, answers, candidates = [], [], []
    for paragraph in data["data"][0]["paragraphs"]:
        context = paragraph["context"]
        for question in paragraph["qas"]:
            tokenizer.enable_truncation(LENGTH, stride=STRIDE, strategy="only_second")
            encoding = tokenizer.encode(question["question"], context)
            features = []
            for part, one in enumerate([encoding] + encoding.overflowing):
                start, end = positions(one.offsets, one.sequence_ids, question["answers"])
                spans = [[bytes_of(context, a), bytes_of(context, b)] if s == 1 else [-1, -1] for (a, b), s in zip(one.offsets, one.sequence_ids)]
                features.append((len(rows), one.offsets, one.sequence_ids))
                rows.append({"ids": one.ids, "types": one.type_ids, "start": start, "end": end, "part": part, "spans": spans})
            both = [best_answers(features, context, none) for none in (False, True)]
            answers.append([answer for answer, _ in both])
            candidates.append([top for _, top in both])
    return rows, answers, candidates


def tagged_rows(tokenizer):
    rows = []
    tokenizer.enable_truncation(1000)
    for words, labels in TAGGED:
        encoding = tokenizer.encode(words, is_pretokenized=True)
        before, found = None, []
        for word in encoding.word_ids:
            found.append(-100 if word is None or word == before else labels[word])
            before = word
        rows.append({"ids": encoding.ids, "labels": found})
    return rows


def main():
    tokenizer = Tokenizer.from_str(json.dumps(TOKENIZER))
    data = squad()
    rows, answers, candidates = question_rows(tokenizer, data)
    golden = {"tokenizer": TOKENIZER, "squad": data, "rows": rows, "answers": answers, "candidates": candidates,
              "tagged": [{"tokens": words, "ner_tags": labels} for words, labels in TAGGED], "tagged_rows": tagged_rows(tokenizer)}
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "text", "question_rows.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
                                      for key, value in golden.items()) + "\n}\n")


if __name__ == "__main__":
    main()
