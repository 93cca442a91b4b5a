// A whole training step of a language model on made-up tokens, as the trainer drives it: feeds,
// then every operation of the training schedule (AdamW with weight decay; one rank).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/job_task.h"
#include "train/session.h"

namespace fleet::bench {

struct LanguageModelSizes {
  std::string model, task, data;  // JSON of the job file; data: without batch_size
  int64_t batch, length;          // rows, and tokens of a row
  int64_t vocabulary, hidden, layers;
  // [outputs, inputs] of a layer's linear operations.
  std::vector<std::pair<int64_t, int64_t>> linear;
  int64_t masked = 0;     // masked tokens of a row
  int64_t head_rows = 0;  // rows of the head's product; 0: the model has no such head
};

// "llama": the sizes of SmolLM2-135M; "gpt2": 124 million parameters; "bert": BERT-base, which
// classifies, without dropout; "bert_dropout": with BERT's dropout of 0.1; "bert_pretraining":
// without, with its masked head and the next sentence. kUsage for another name.
inline const LanguageModelSizes& language_model_sizes(const std::string& name) {
  const std::string tokens = R"("source": "tokens", "train": {"file": "none.bin"})";
  const std::string no_dropout = R"({"name": "bert", "hidden_dropout_prob": 0,
      "attention_probs_dropout_prob": 0)";
  const std::vector<std::pair<int64_t, int64_t>> base = {
      {2304, 768}, {768, 768}, {3072, 768}, {768, 3072}};
  static const std::map<std::string, LanguageModelSizes> all = {
      {"llama",
       {R"({"name": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
            "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
            "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
            "rope_parameters": {"rope_theta": 100000}})",
        "causal_lm",
        tokens,
        4,
        256,
        49152,
        576,
        30,
        {{960, 576}, {576, 576}, {3072, 576}, {576, 1536}},
        0,
        1024}},
      {"gpt2",
       {R"({"name": "gpt2", "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})", "causal_lm",
        tokens, 4, 256, 50257, 768, 12, base, 0, 1024}},
      {"bert",
       {no_dropout + R"(, "num_classes": 2})", "sequence_classification",
        R"("source": "labelled_text", "tokenizer": "none.json", "train": {"file": ["none.tsv"]})",
        8, 128, 30522, 768, 12, base}},
      {"bert_dropout",
       {R"({"name": "bert", "num_classes": 2})", "sequence_classification",
        R"("source": "labelled_text", "tokenizer": "none.json", "train": {"file": ["none.tsv"]})",
        8, 128, 30522, 768, 12, base}},
      {"bert_pretraining",
       {no_dropout + "}", "masked_lm",
        R"("source": "masked_text", "tokenizer": "none.json", "train": {"file": ["none.txt"]},
           "masked_tokens": 20)",
        8, 128, 30522, 768, 12, base, 20, 160}}};
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  throw Error(ErrorCode::kUsage, "unknown model", name,
              "there are llama, gpt2, bert, bert_dropout and bert_pretraining");
}

class LanguageStep {
 public:
  LanguageStep(Device& device, const std::string& model, bool amp)
      : sizes_(language_model_sizes(model)),
        job_(job_of(sizes_, amp)),
        session_(job_, {.columns = expected_columns(job_), .backend = device.backend()}, device,
                 nullptr) {
    for (const TrainingFeed& feed : session_.training().feeds) {
      const Var& var = executor().program().var(feed.var);
      const auto count = static_cast<size_t>(var.shape.elements());
      if (var.dtype == DType::kInt64) {
        std::vector<int64_t>& values = integers_[feed.name];
        values.resize(count);
        for (size_t i = 0; i < count; ++i)
          values[i] = integer_of(feed.name, static_cast<int64_t>(i));
      } else {
        numbers_[feed.name].assign(count, number_of(feed.name));
      }
    }
  }

  void run() {
    Executor& executor = session_.executor();
    for (const auto& [name, values] : integers_) feed<int64_t>(name, values);
    for (const auto& [name, values] : numbers_) feed<float>(name, values);
    executor.run({.step = step_++});
    executor.synchronize();
  }

  float loss() { return executor().values<float>(session_.training().loss)[0]; }
  Executor& executor() { return session_.executor(); }

 private:
  template <typename T>
  void feed(const std::string& name, std::span<const T> values) {
    session_.executor().feed(session_.training().feed(name), values);
  }

  int64_t integer_of(const std::string& name, int64_t i) const {
    const int64_t vocabulary = sizes_.vocabulary;
    if (name == "input_ids") return i * 7919 % vocabulary;
    if (name == "labels" || name == "masked_labels") return (i + 1) * 7919 % vocabulary;
    if (name == "position_ids") return i % sizes_.length;
    if (name == "masked_positions") return i % sizes_.masked * 6 + 1;
    if (name == "label" || name == "next_sentence_label") return i % 2;
    return name == "sample_key" ? i * 61 : 0;  // one document, of one segment
  }

  float number_of(const std::string& name) const {
    if (name == "learning_rate") return 6e-4f;
    if (name == "sample_denominator") return static_cast<float>(sizes_.batch);
    if (name != "denominator") return 1;  // weights
    return static_cast<float>(sizes_.batch * (sizes_.masked > 0 ? sizes_.masked : sizes_.length));
  }

  static Job job_of(const LanguageModelSizes& sizes, bool amp) {
    const std::string text = R"({"task": ")" + sizes.task + R"(", "model": )" + sizes.model +
                             R"(, "data": {)" + sizes.data + R"(, "sequence_length": )" +
                             std::to_string(sizes.length) + R"(, "batch_size": )" +
                             std::to_string(sizes.batch) + R"(},
      "optimizer": {"name": "adamw", "beta2": 0.95, "weight_decay": 0.1},
      "learning_rate": {"name": "constant", "base": 6e-4},
      "strategy": {"amp": )" +
                             (amp ? "true" : "false") + "}}";
    ConfigTree tree = ConfigTree::from_json(text, "language_step");
    return make_job(tree);
  }

  const LanguageModelSizes& sizes_;
  Job job_;
  Session session_;
  std::map<std::string, std::vector<int64_t>> integers_;
  std::map<std::string, std::vector<float>> numbers_;
  int64_t step_ = 0;
};

}  // namespace fleet::bench
