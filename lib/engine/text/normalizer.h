// The section "normalizer" of a tokenizer.json.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/aligned_text.h"

namespace fleet::text {

// Const member functions may be called by several threads at once. Valid UTF-8 in and out.
class Normalizer {
 public:
  // json: null for none. Errors as those of TextSplitter.
  Normalizer(const Json& json, const std::string& where);
  bool empty() const { return steps_.empty(); }
  std::string apply(std::string_view text) const;
  // The same, with the ranges of Hugging Face's tokenizers.
  void apply(AlignedText& text) const;

 private:
  struct Step {
    std::function<std::string(std::string_view text)> plain;
    std::function<void(AlignedText& text)> aligned;
  };
  void add(const Json& json, const std::string& where, int depth);

  std::vector<Step> steps_;
};

}  // namespace fleet::text
