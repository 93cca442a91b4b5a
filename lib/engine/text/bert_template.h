// The tokens that BERT puts around texts, as the section "post_processor" of a tokenizer.json.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"

namespace fleet::text {

struct NamedToken {
  std::string name;
  int64_t id = 0;
};

// `cls A sep` for one text, `cls A sep B sep` for two; B and the last sep have segment 1. Its form
// equals Hugging Face's TemplateProcessing (tokenizers 0.23).
Json bert_template(const NamedToken& cls, const NamedToken& sep);

}  // namespace fleet::text
