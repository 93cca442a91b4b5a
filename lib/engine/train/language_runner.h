// Computes the logits of the token behind a text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/source.h"
#include "exec/executor.h"
#include "train/job.h"

namespace fleet {

// A language model with trained weights on a device, with rows of a few lengths: powers of two, so
// that a short text does not cost as much as the longest. Not thread-safe.
class LanguageRunner {
 public:
  // job: its model is a language model. longest: tokens of the longest row, from 1 up.
  LanguageRunner(const Job& job, Device& device, int64_t longest);

  // Logits of the token behind `tokens`; reads at most the last `longest` tokens. Valid until the
  // next call. Errors of load_trained_weights() at the first call and when a longer row is needed.
  std::span<const float> logits(std::span<const uint32_t> tokens);
  // The tokenizer with which the model was trained, from logits() on; of hash 0: unknown.
  const data::TokenizerIdentity& tokenizer() const { return tokenizer_; }

 private:
  void build(int64_t length);

  const Job& job_;
  Device& device_;
  const int64_t longest_;
  int64_t length_ = 0;  // tokens of a row of executor_
  std::unique_ptr<Executor> executor_;
  VarId input_ids_ = kNoVar, position_ids_ = kNoVar, document_ids_ = kNoVar, last_ = kNoVar,
        result_ = kNoVar;
  std::vector<int64_t> row_, positions_, documents_;
  std::vector<float> logits_;
  data::TokenizerIdentity tokenizer_;
  bool said_ = false;  // which weights it uses
};

}  // namespace fleet
