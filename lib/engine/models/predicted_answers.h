// Predictions of question_answering: the piece of a text that answers a question.
#pragma once

#include <cstdint>
#include <memory>

#include "models/answer_metrics.h"
#include "models/prediction_decoder.h"

namespace fleet {

// Reads the output "span_logits" and the columns "part", "token_begin" and "token_end", as
// AnswerMetrics does. length: tokens of a row, at most.
//
// The windows of a question are combined as transformers' example does it
// (examples/pytorch/question-answering/utils_qa.py): the best limits.candidates spans remain, and
// their probabilities are the softmax of their scores. The null answer is one of them if
// limits.may_have_none. A line has "answer", "start" and "end" (characters of the context; null for
// the null answer, which is ""), "score", "probability", and "top", the best candidates. Texts of a
// sample: "context".
std::unique_ptr<PredictionDecoder> answer_decoder(const AnswerLimits& limits, int64_t length);

}  // namespace fleet
