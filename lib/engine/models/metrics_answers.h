// Answers to questions compared with the right ones, as SQuAD's evaluation scripts do it
// (evaluate-v1.1.py, evaluate-v2.0.py). Pure functions. Text is UTF-8; bytes that are not become
// U+FFFD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/named_metrics.h"

namespace fleet {

// Lower case, without ASCII punctuation and the words a, an, the; words joined by one space. Unlike
// Python's lower(), a capital sigma at the end of a word becomes σ.
std::string normalized_answer(std::string_view answer);

// Whether both are equal once normalized.
bool is_exact_answer(std::string_view right, std::string_view answer);
// The F1 of the words of `answer` against those of `right`, as bags of words. If one of them has no
// words: 1 if both have none, else 0, as in version 2.0 (version 1.1 has no such answers).
double answer_f1(std::string_view right, std::string_view answer);

// Adds one question: the best values over the right answers. Without right answers that have words,
// only the empty answer is right, as in version 2.0. answer: "" if the model gives none.
void add_answer(const std::vector<std::string>& right, std::string_view answer, AnswerSums* sums);

}  // namespace fleet
