// The sections "post_processor", "truncation" and "padding" of a tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace fleet::text {

// The ids around those of a text: [CLS] .. [SEP].
struct PostProcessor {
  PostProcessor() = default;
  // json: null for none. Errors as those of Tokenizer::from_json().
  PostProcessor(const Json& json, const std::string& where);

  std::vector<uint32_t> before, after;

 private:
  void add(const Json& json, const std::string& where, int depth);
};

// Lengths in tokens.
struct Truncation {
  bool on = false;
  size_t most = 0;    // with the tokens of the post-processor
  bool left = false;  // cuts the beginning of the text

  Truncation() = default;
  Truncation(const Json& json, const std::string& where);
};

struct Padding {
  bool on = false;
  size_t length = 0;    // at least
  size_t multiple = 0;  // 0: of nothing
  bool left = false;
  uint32_t id = 0;

  Padding() = default;
  Padding(const Json& json, const std::string& where);
};

}  // namespace fleet::text
