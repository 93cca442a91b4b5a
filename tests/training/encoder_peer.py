"""Compares encoders of transformers with those that fleetrun reads and writes.

  encoder_peer.py make FOLDER                writes models of each head, texts and a tokenizer; prints "name task" lines
  encoder_peer.py same A B                   whether two folders hold the same class of model with the same weights and names of classes
  encoder_peer.py logits OUT FOLDER...       saves what each folder's model computes in OUT; sys.exit if weights are missing or left over
  encoder_peer.py compare A B                whether two of these files are equal
"""
import json
import os
import sys

SIZES = {"vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
         "max_position_embeddings": 40, "pad_token_id": 0}
DISTIL = {"vocab_size": 60, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 20, "max_position_embeddings": 40}
HEADS = {  # class of transformers: task
    "ForMaskedLM": "masked_lm", "ForSequenceClassification": "sequence_classification",
    "ForTokenClassification": "token_classification", "ForQuestionAnswering": "question_answering"}
NAMES = ["B-X", "I-X", "O"]
WORDS = "the cat sat on a mat and dogs ran far from it while birds sang old songs all day".split()


def models():
    """(name, task, class, config)"""
    for family, stem, sizes in (("bert", "Bert", SIZES), ("roberta", "Roberta", SIZES), ("distilbert", "DistilBert", DISTIL)):
        for head, task in HEADS.items():
            config = dict(sizes)
            if "Classification" in head:
                config.update(id2label=dict(enumerate(NAMES)), label2id={name: i for i, name in enumerate(NAMES)})
            yield f"{family}_{task}", task, stem + head, config
    yield "bert_pretraining", "masked_lm", "BertForPreTraining", SIZES
    yield "bert_untied", "masked_lm", "BertForMaskedLM", dict(SIZES, tie_word_embeddings=False)


def make_tokenizer(path):
    from tokenizers import Tokenizer, models as kinds, pre_tokenizers, processors
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {token: i for i, token in enumerate(special + WORDS + ["##s", "##ing", "?", "."])}
    tokenizer = Tokenizer(kinds.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(path)


def make(folder):
    import torch
    import transformers
    torch.manual_seed(1)
    os.makedirs(folder)
    lines = []
    for name, task, class_name, config in models():
        model_class = getattr(transformers, class_name)
        model = model_class(model_class.config_class(**config))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))  # biases, too
            bias = getattr(getattr(getattr(model, "cls", None), "predictions", None), "bias", None)
            if bias is not None:  # transformers 4 computes with this one, transformers 5 with the decoder's
                model.cls.predictions.decoder.bias.copy_(bias)
        model.save_pretrained(os.path.join(folder, name))
        make_tokenizer(os.path.join(folder, name, "tokenizer.json"))
        lines.append(f"{name} {task}")
    text = " ".join(WORDS)
    with open(os.path.join(folder, "texts.jsonl"), "w", encoding="utf-8") as file:
        for i in range(40):
            print(json.dumps({"text": ". ".join(" ".join(WORDS[(i + k * k) % 15:][:6]) for k in range(8)) + "."}), file=file)
    with open(os.path.join(folder, "classes.tsv"), "w", encoding="utf-8") as file:
        print("text\tlabel", file=file)
        for i in range(12):
            print(f"{' '.join(WORDS[i:i + 5])}\t{NAMES[i % 3]}", file=file)
    with open(os.path.join(folder, "labels.jsonl"), "w", encoding="utf-8") as file:
        for i in range(12):
            print(json.dumps({"tokens": WORDS[i:i + 3], "labels": NAMES}), file=file)
    answer = {"id": "1", "question": "the cat ?", "answers": [{"text": "cat", "answer_start": text.index("cat")}]}
    with open(os.path.join(folder, "squad.json"), "w", encoding="utf-8") as file:
        json.dump({"data": [{"title": "t", "paragraphs": [{"context": text, "qas": [answer]}]}]}, file)
    print("\n".join(lines))


def loaded(folder):
    import transformers
    config = json.load(open(os.path.join(folder, "config.json"), encoding="utf-8"))
    model, report = getattr(transformers, config["architectures"][0]).from_pretrained(folder, output_loading_info=True)
    wrong = {key: value for key, value in report.items() if value}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    return model.eval()


def same(first, second):
    ours, theirs = loaded(first), loaded(second)
    if type(ours) is not type(theirs) or ours.config.id2label != theirs.config.id2label:
        sys.exit(f"{first} and {second}: {type(ours)} {ours.config.id2label}, {type(theirs)} {theirs.config.id2label}")
    ours, theirs = ours.state_dict(), theirs.state_dict()
    if ours.keys() != theirs.keys() or not ours:
        sys.exit(f"{first} and {second}: {sorted(ours.keys() ^ theirs.keys())}")
    for name, tensor in ours.items():
        if not tensor.equal(theirs[name]):
            sys.exit(f"{first} and {second} differ in {name}")


def logits(out, folders):
    import torch
    ids = torch.tensor([[2, 5, 7, 9, 3, 11, 12, 3], [2, 8, 6, 3, 0, 0, 0, 0]])
    result = {}
    for folder in folders:
        with torch.no_grad():
            outputs = loaded(folder)(input_ids=ids, attention_mask=(ids != 0).long())
        for name, values in outputs.items():
            if "logits" in name:
                result[f"{os.path.basename(folder)} {name}"] = values
    torch.save(result, out)


def compare(first, second):
    import torch
    ours, theirs = torch.load(first), torch.load(second)
    if ours.keys() != theirs.keys() or not ours:
        sys.exit(f"{sorted(ours)} and {sorted(theirs)}")
    for name, values in ours.items():
        if values.std() < 1e-3 or not torch.allclose(values, theirs[name], rtol=0, atol=1e-6):
            sys.exit(f"{name}: logits differ by {(values - theirs[name]).abs().max()}, deviation {values.std()}")
    print(len(ours), "equal logits")


{"make": lambda a: make(*a), "same": lambda a: same(*a), "logits": lambda a: logits(a[0], a[1:]),
 "compare": lambda a: compare(*a)}[sys.argv[1]](sys.argv[2:])
