// The collector of metrics of extracted answers, for MetricInput::kAnswers. It chooses the answer
// as transformers' example does (examples/pytorch/question-answering/utils_qa.py).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/metrics_answers.h"

namespace fleet {

// A span of a window's tokens; both ends belong to it.
struct AnswerSpan {
  double score = 0;  // the sum of two logits
  int64_t first = 0, last = 0;
  bool operator==(const AnswerSpan&) const = default;
};

struct AnswerLimits {
  int64_t candidates = 20;     // the best starts and the best ends of a window that are combined
  int64_t longest = 30;        // tokens of an answer
  bool may_have_none = false;  // "" is an answer, as in SQuAD 2.0
  double none_threshold = 0;   // "" if its score is higher than the best answer's by more than this
};

// The best `count` spans of one window, as best_answer() chooses them: the best first.
std::vector<AnswerSpan> best_answers(std::span<const float> starts, std::span<const float> ends,
                                     std::span<const uint8_t> in_context,
                                     const AnswerLimits& limits, size_t count);
// The logits of a window with the tokens that belong to the context.
struct AnswerWindow {
  // logits: [S, 2]. begins: token_begin of the row.
  AnswerWindow(std::span<const float> logits, std::span<const int64_t> begins);
  std::vector<float> starts, ends;
  std::vector<uint8_t> in_context;
  double none = 0;  // the score of the null answer
};
// The best span of one window that begins and ends in the context (in_context != 0). last = -1:
// none qualifies. Of equal scores the earlier start wins, then the earlier end; a logit that is not
// a number is the lowest.
AnswerSpan best_answer(std::span<const float> starts, std::span<const float> ends,
                       std::span<const uint8_t> in_context, const AnswerLimits& limits);

// Reads the output "span_logits", [N, S, 2] (starts, ends), the columns "question" and "part",
// int64 [N], "token_begin" and "token_end", int64 [N, S] (bytes of the context; -1 outside),
// "weight", and the texts "context" and "answers". The best window of a question gives its answer;
// the null answer is scored by the first token, by the lowest score over the windows. Exact,
// whatever the batches and the number of ranks. Not thread-safe.
class AnswerMetrics : public EvaluationCollector {
 public:
  AnswerMetrics(std::vector<std::string> metrics, const AnswerLimits& limits)
      : metrics_(std::move(metrics)), limits_(limits) {}

  std::vector<std::string> outputs() const override { return {"span_logits"}; }
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override;
  std::map<std::string, double> metrics() const override;
  const AnswerSums& sums() const { return sums_; }

 private:
  struct Window {
    std::string answer;  // the text under its best span
    std::vector<std::string> right;
  };
  const std::vector<std::string> metrics_;
  const AnswerLimits limits_;
  std::vector<double> rows_;  // a window: question, part, null score, best score, 1 if it has one
  std::vector<Window> windows_;  // the same windows
  AnswerSums sums_;
};

}  // namespace fleet
