// Continues a text with the language model of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tensor/device.h"
#include "text/sampling.h"
#include "train/job.h"

namespace fleet {

struct GenerateOptions {
  std::string prompt;    // UTF-8, not empty; special tokens in it are recognized
  int64_t tokens = 200;  // at most; a special token ends the text before
  text::SamplingOptions sampling;
  std::string tokenizer;  // a file; "": data.tokenizer of the job, or the one in the model's folder
};

struct GenerateResult {
  int64_t prompt_tokens = 0, tokens = 0;  // tokens of the prompt; generated tokens
  double seconds = 0;                     // time to generate them
};

// write gets the text of the prompt, then each new part of the text, in whole UTF-8 characters.
// Computes in float32, in one process. Every token takes a pass over the whole text; a text longer
// than the model's rows is continued from its last tokens. kUsage if the job has no language model,
// no tokenizer or no weights, or if they do not fit: the tokenizer has more tokens than the model.
GenerateResult generate(const Job& job, Device& device, const GenerateOptions& options,
                        const std::function<void(std::string_view)>& write);

}  // namespace fleet
