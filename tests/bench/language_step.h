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
  std::string model;  // JSON of the job file
  int64_t vocabulary, hidden, layers;
  // [outputs, inputs] of a layer's linear operations.
  std::vector<std::pair<int64_t, int64_t>> linear;
};

// "llama": the sizes of SmolLM2-135M; "gpt2": 124 million parameters. kUsage for another name.
inline const LanguageModelSizes& language_model_sizes(const std::string& name) {
  static const std::map<std::string, LanguageModelSizes> all = {
      {"llama",
       {R"({"name": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
            "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
            "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
            "rope_parameters": {"rope_theta": 100000}})",
        49152,
        576,
        30,
        {{960, 576}, {576, 576}, {3072, 576}, {576, 1536}}}},
      {"gpt2",
       {R"({"name": "gpt2", "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})",
        50257,
        768,
        12,
        {{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}}}}};
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  throw Error(ErrorCode::kUsage, "unknown model", name, "there are llama and gpt2");
}

class LanguageStep {
 public:
  LanguageStep(Device& device, const std::string& model, int64_t batch, int64_t length, bool amp)
      : job_(job_of(language_model_sizes(model).model, batch, length, amp)),
        session_(job_, {.columns = expected_columns(job_), .backend = device.backend()}, device,
                 nullptr),
        ids_(batch * length),
        positions_(batch * length),
        documents_(batch * length),
        labels_(batch * length),
        weights_(batch * length, 1.0f),
        keys_(batch),
        denominator_(static_cast<float>(batch * length)) {
    const int64_t vocabulary = language_model_sizes(model).vocabulary;
    for (int64_t i = 0; i < batch * length; ++i) {
      ids_[i] = i * 7919 % vocabulary;
      labels_[i] = (i + 1) * 7919 % vocabulary;
      positions_[i] = i % length;
    }
    for (int64_t i = 0; i < batch; ++i) keys_[i] = i * 61;
  }

  void run() {
    Executor& executor = session_.executor();
    feed<int64_t>("input_ids", ids_);
    feed<int64_t>("position_ids", positions_);
    feed<int64_t>("document_ids", documents_);
    feed<int64_t>("labels", labels_);
    feed<float>("loss_weight", weights_);
    feed<int64_t>("sample_key", keys_);
    feed<float>("denominator", {&denominator_, 1});
    feed<float>("learning_rate", {&rate_, 1});
    executor.run({.step = step_++});
    executor.synchronize();
  }

  float loss() { return executor().values<float>(session_.training().loss)[0]; }
  Executor& executor() { return session_.executor(); }

 private:
  template <typename T>
  void feed(const char* name, std::span<const T> values) {
    const VarId var = session_.training().feed(name);
    if (var != kNoVar) session_.executor().feed(var, values);  // Llama has no learned positions
  }

  static Job job_of(const std::string& model, int64_t batch, int64_t length, bool amp) {
    const std::string text = R"({"task": "causal_lm", "model": )" + model +
                             R"(, "data": {"source": "tokens", "train": {"file": "none.bin"},
                             "sequence_length": )" +
                             std::to_string(length) + R"(, "batch_size": )" +
                             std::to_string(batch) + R"(},
      "optimizer": {"name": "adamw", "beta2": 0.95, "weight_decay": 0.1},
      "learning_rate": {"name": "constant", "base": 6e-4},
      "strategy": {"amp": )" +
                             (amp ? "true" : "false") + "}}";
    ConfigTree tree = ConfigTree::from_json(text, "language_step");
    return make_job(tree);
  }

  Job job_;
  Session session_;
  std::vector<int64_t> ids_, positions_, documents_, labels_;
  std::vector<float> weights_;
  std::vector<int64_t> keys_;
  float denominator_, rate_ = 6e-4f;
  int64_t step_ = 0;
};

}  // namespace fleet::bench
