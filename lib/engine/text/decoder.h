// The section "decoder" of a tokenizer.json.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace fleet::text {

// Const member functions may be called by several threads at once.
class Decoder {
 public:
  // json: null for none: tokens with spaces between them. Errors as those of Tokenizer.
  Decoder(const Json& json, const std::string& where);
  // The decoder of a rank file: tokens are bytes.
  static Decoder of_bytes();

  // Bytes that are no UTF-8 become U+FFFD.
  std::string decode(std::vector<std::string> tokens) const;

 private:
  Decoder() = default;
  using Step = std::function<std::vector<std::string>(std::vector<std::string> tokens)>;
  void add(const Json& json, const std::string& where, int depth);

  std::vector<Step> steps_;
  bool spaces_ = false;
};

}  // namespace fleet::text
