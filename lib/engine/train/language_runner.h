// Computes the logits of the token behind a text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "train/job.h"

namespace fleet {

// A language model with trained weights on a device, with rows of a few lengths: powers of two, so
// that a short text does not cost as much as the longest. Not thread-safe.
class LanguageRunner {
 public:
  // longest: tokens of the longest row, from 1 up. kUsage for another model.
  LanguageRunner(const Job& job, Device& device, int64_t longest);

  int64_t longest() const { return longest_; }
  // Logits of the token behind `tokens`; reads at most the last longest() tokens. Valid until the
  // next call. Errors of load_trained_weights() at the first call and when a longer row is needed.
  std::span<const float> logits(std::span<const uint32_t> tokens);

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
  bool said_ = false;  // which weights it uses
};

}  // namespace fleet
