// Predictions of token_classification: a label and its probability for each word.
#pragma once

#include <memory>

#include "models/prediction_decoder.h"

namespace fleet {

// Reads the output "token_logits", [N, S, classes], and the columns "token_labels", int64 [N, S]
// (not below 0 where a word begins), and "part", int64 [N] (the parts of a long text are joined
// again). A line has "words": "text", "label" (the name of the class, or its number) and
// "probability"; or, for a word without a prediction, "error". "left_out" counts those. Texts of a
// sample: "words", and "left_out", why a word has no prediction, "" if it has one.
std::unique_ptr<PredictionDecoder> word_decoder(const TaskContext& context);

}  // namespace fleet
