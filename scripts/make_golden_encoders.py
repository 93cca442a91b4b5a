#!/usr/bin/env python3
"""Generates tests/golden/text/encoder_<case>.safetensors: outputs, losses and gradients of transformers' classes of bert, roberta and
distilbert, with each of their heads, that this project's encoders must reproduce.

    python3 scripts/make_golden_encoders.py     # with torch, transformers and safetensors

No weights are stored: see scripts/golden_tensors.py. Texts have different lengths; outputs of padding are stored as 0. PyTorch computes
in float64; the stored values are rounded to float32. Metadata: config, head, batch, length, inputs (by name), losses (before each of 20
steps of AdamW: learning rate 0.001, decay 0.1, epsilon 1e-6).
"""
import argparse
import json
import os
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "text"))
options = parser.parse_args()

try:
    import numpy
    import torch
    import transformers
    from safetensors.numpy import save_file

    from golden_tensors import draws, tensor
except ImportError as error:
    print(f"SKIP: {error.name} is not installed here (pip install torch transformers safetensors)")
    sys.exit(0)

NONE = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
BERT = dict(NONE, vocab_size=23, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=10,
            max_position_embeddings=16, num_labels=3)
ROBERTA = dict(BERT, type_vocab_size=1, pad_token_id=1)
DISTIL = dict(vocab_size=23, dim=12, n_layers=2, n_heads=3, hidden_dim=10, max_position_embeddings=16, dropout=0.0,
              attention_dropout=0.0, qa_dropout=0.0, seq_classif_dropout=0.0, num_labels=3)
CASES = {  # name: (class, config)
    "bert_pretraining": ("BertForPreTraining", BERT),
    "bert_masked": ("BertForMaskedLM", dict(BERT, tie_word_embeddings=False, hidden_act="gelu_new", num_hidden_layers=1)),
    "bert_sequence": ("BertForSequenceClassification", dict(BERT, num_hidden_layers=1)),
    "bert_tokens": ("BertForTokenClassification", dict(BERT, num_hidden_layers=1)),
    "bert_spans": ("BertForQuestionAnswering", dict(BERT, num_hidden_layers=1, num_labels=2)),
    "roberta_masked": ("RobertaForMaskedLM", ROBERTA),
    "roberta_sequence": ("RobertaForSequenceClassification", dict(ROBERTA, num_hidden_layers=1, type_vocab_size=2)),
    "roberta_tokens": ("RobertaForTokenClassification", dict(ROBERTA, num_hidden_layers=1)),
    "roberta_spans": ("RobertaForQuestionAnswering", dict(ROBERTA, num_hidden_layers=1, num_labels=2)),
    "distilbert_masked": ("DistilBertForMaskedLM", DISTIL),
    "distilbert_sequence": ("DistilBertForSequenceClassification", dict(DISTIL, n_layers=1)),
    "distilbert_tokens": ("DistilBertForTokenClassification", dict(DISTIL, n_layers=1)),
    "distilbert_spans": ("DistilBertForQuestionAnswering", dict(DISTIL, n_layers=1, num_labels=2)),
}
LENGTHS = [11, 7, 4]  # tokens of each text; rows have 11
MASKED = [[2, 5, 9], [1, 6, 3], [0, 3]]  # masked positions of each text


def model_of(class_name, config):
    model_class = getattr(transformers, class_name)
    config = model_class.config_class(**config)
    config.architectures = [class_name]
    config._attn_implementation = "eager"
    model = model_class(config).double().train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensor(name, tuple(parameter.shape)).double())
    return model


def numbers(name, shape, count):
    size = int(numpy.prod(shape))
    return torch.from_numpy((draws(name, size) % numpy.uint64(count)).astype(numpy.int64)).view(*shape)


class Inputs:
    """The inputs of a case: of the class of transformers, and under our names."""

    def __init__(self, config, head):
        batch, length = len(LENGTHS), max(LENGTHS)
        self.real = torch.tensor([[int(i < n) for i in range(length)] for n in LENGTHS])
        ids = 3 + numbers("tokens", (batch, length), config.vocab_size - 3)
        ids = torch.where(self.real == 1, ids, config.pad_token_id)
        self.theirs = {"input_ids": ids, "attention_mask": self.real}
        self.loss = lambda result: result.loss
        self.ours = {"input_ids": ids, "position_ids": torch.arange(length).expand(batch, length), "document_ids": self.real - 1}
        if config.model_type == "bert":
            types = numbers("types", (batch, length), 2) * self.real
            self.theirs["token_type_ids"] = self.ours["token_type_ids"] = types
        getattr(self, head)(config)

    def masked(self, config):
        places = torch.tensor([row + [0] * (3 - len(row)) for row in MASKED])
        tokens = 3 + numbers("masked", (3, 3), config.vocab_size - 3)
        used = torch.tensor([[int(i < len(row)) for i in range(3)] for row in MASKED])
        labels = torch.full_like(self.real, -100)
        for b, row in enumerate(MASKED):
            for m, place in enumerate(row):
                labels[b, place] = tokens[b, m]
        self.theirs["labels"] = labels
        self.ours.update(masked_positions=places, masked_labels=torch.where(used == 1, tokens, -100))
        self.read = lambda result: {"masked_logits": torch.gather(
            result.logits, 1, places[:, :, None].expand(3, 3, config.vocab_size)) * used[:, :, None]}

    def pretraining(self, config):
        self.masked(config)
        next_sentence = torch.tensor([1, 0, 1])
        self.theirs["next_sentence_label"] = self.ours["next_sentence_label"] = next_sentence
        places = self.ours["masked_positions"]
        used = (self.ours["masked_labels"] >= 0).long()
        self.read = lambda result: {
            "masked_logits": torch.gather(result.prediction_logits, 1, places[:, :, None].expand(3, 3, config.vocab_size))
            * used[:, :, None],
            "next_sentence_logits": result.seq_relationship_logits}

    def sequence(self, config):
        self.theirs["labels"] = self.ours["label"] = torch.tensor([2, 0, 1])
        self.read = lambda result: {"logits": result.logits}

    def tokens(self, config):
        labels = numbers("labels", tuple(self.real.shape), config.num_labels)
        labels = torch.where((self.real == 1) & (numbers("some", tuple(self.real.shape), 4) > 0), labels, -100)
        self.theirs["labels"] = self.ours["labels"] = labels
        self.read = lambda result: {"token_logits": result.logits * self.real[:, :, None]}

    def spans(self, config):
        for name, places in (("start_position", [3, 0, 1]), ("end_position", [10, 6, 1])):
            self.ours[name] = self.theirs[name + "s"] = torch.tensor(places)
        self.read = lambda result: {"span_logits": torch.stack([result.start_logits, result.end_logits], 2) * self.real[:, :, None]}
        # Of real tokens: transformers' own loss counts the logits of padding, so it depends on the length of a row.
        self.loss = lambda result: sum(
            torch.nn.functional.cross_entropy(logits.masked_fill(self.real == 0, -1e4), self.ours[side])
            for logits, side in ((result.start_logits, "start_position"), (result.end_logits, "end_position"))) / 2


def generate(name, class_name, config):
    model = model_of(class_name, config)
    head = name.split("_")[1]
    inputs = Inputs(model.config, head)
    result = model(**inputs.theirs)
    inputs.loss(result).backward()
    tensors = {key: value.detach() for key, value in inputs.read(result).items()}
    for parameter_name, parameter in model.named_parameters():
        if parameter.grad is not None:  # the second name of an untied bias has none
            tensors["gradient." + parameter_name] = parameter.grad
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.1, eps=1e-6)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = inputs.loss(model(**inputs.theirs))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        model.config.save_pretrained(folder)
        saved = json.load(open(os.path.join(folder, "config.json")))
    ours = {key: value.tolist() for key, value in inputs.ours.items()}
    metadata = {"config": json.dumps(saved), "head": head, "batch": str(len(LENGTHS)), "length": str(max(LENGTHS)),
                "inputs": json.dumps(ours), "losses": json.dumps(losses)}
    arrays = {key: value.float().contiguous().numpy() for key, value in tensors.items()}
    save_file(arrays, os.path.join(options.out, "encoder_" + name + ".safetensors"), metadata=metadata)
    print(name, losses[0], losses[-1], sum(value.size for value in arrays.values()) * 4, "bytes")


transformers.logging.set_verbosity_error()
for case, arguments in CASES.items():
    generate(case, *arguments)
