// The sections "post_processor", "truncation" and "padding" of a tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/encoding.h"

namespace fleet::text {

class PartOptions;

// A text, or a token around texts.
struct TemplatePiece {
  int text = -1;  // 0: the first text, 1: the second; -1: the token `id`
  uint32_t id = 0;
  uint32_t type = 0;
};

using Template = std::vector<TemplatePiece>;

// Takes the white space at the ends of byte-level tokens out of their offsets.
struct OffsetTrimming {
  bool add_prefix_space = false;
};

// The tokens around one or two texts: [CLS] .. [SEP] .. [SEP].
struct PostProcessor {
  PostProcessor();
  // json: null for none. Errors as those of Tokenizer::from_json().
  PostProcessor(const Json& json, const std::string& where);

  Template single, pair;
  std::vector<OffsetTrimming> trimmings;  // done one after the other

  const Template& of(bool is_pair) const { return is_pair ? pair : single; }
  // How many tokens a template adds.
  static size_t added(const Template& pieces);

 private:
  void add(const Json& json, const std::string& where, int depth);
  void set(Template one, Template two, const PartOptions& options);

  bool has_template_ = false;
};

// Lengths in tokens.
struct Truncation {
  bool on = false;
  TruncateTo to;

  Truncation() = default;
  Truncation(const Json& json, const std::string& where);
};

// The tokens that each text keeps if both may have `most` together. second: 0 if there is no
// second text. kUsage if the rule's text alone is too short to give enough.
struct KeptTokens {
  size_t first, second;
};
KeptTokens kept_tokens(size_t first, size_t second, size_t most, TruncationRule rule, bool is_pair);

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
