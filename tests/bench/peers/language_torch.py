"""PyTorch's training step of a language model for language_step.py, with transformers' network:
llama|gpt2|bert|bert_dropout|bert_pretraining float32|bfloat16 ROUNDS. 4 rows of 256 tokens, of BERT 8 of 128, fused AdamW,
scaled_dot_product_attention; bfloat16 is autocast. Prints "torch VERSION step SECONDS": the median of the processor's seconds."""
import statistics
import sys
import time

try:
    import torch
    import transformers
except ImportError as error:
    print(f"SKIP: {error.name} is not installed")
    sys.exit(0)

name, amp, rounds = sys.argv[1], sys.argv[2] == "bfloat16", int(sys.argv[3])
torch.set_num_threads(1)
torch.manual_seed(1)
if name == "llama":  # the sizes of SmolLM2-135M
    config = transformers.LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
        max_position_embeddings=8192, rms_norm_eps=1e-5, tie_word_embeddings=True, use_cache=False, attn_implementation="sdpa")
    model = transformers.LlamaForCausalLM(config)
elif name.startswith("bert"):
    dropout = 0.1 if name == "bert_dropout" else 0
    config = transformers.BertConfig(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, attn_implementation="sdpa")
    model = (transformers.BertForPreTraining if name == "bert_pretraining" else transformers.BertForSequenceClassification)(config)
else:
    config = transformers.GPT2Config(embd_pdrop=0, attn_pdrop=0, resid_pdrop=0, use_cache=False, attn_implementation="sdpa")
    model = transformers.GPT2LMHeadModel(config)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
ids = (torch.arange(1024) * 7919 % config.vocab_size).view(*((8, 128) if name.startswith("bert") else (4, 256)))
feeds = {"input_ids": ids, "labels": ids}
if name in ("bert", "bert_dropout"):
    feeds["labels"] = torch.arange(8) % 2
elif name == "bert_pretraining":  # 20 masked tokens of a row
    masked = torch.full_like(ids, -100)
    masked[:, 1:121:6] = ids[:, 1:121:6]
    feeds = {"input_ids": ids, "labels": masked, "next_sentence_label": torch.arange(8) % 2}


def step():
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
        loss = model(**feeds).loss
    loss.backward()
    optimizer.step()


step()
seconds = []
for _ in range(rounds):
    begin = time.process_time()
    step()
    seconds.append(time.process_time() - begin)
version = torch.__version__.split("+")[0]
print(f"torch {version} step {statistics.median(seconds):.3f}")
