// The section "model" of a tokenizer.json: one piece of text to ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/vocabulary.h"

namespace fleet::text {

// Const member functions may be called by several threads at once.
class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of a piece, which is not empty.
  virtual void encode(std::string_view piece, std::vector<uint32_t>& ids) const = 0;
  // The same, with the bytes of the piece that each token takes, one after the other.
  virtual void encode(std::string_view piece, std::vector<uint32_t>& ids,
                      std::vector<uint32_t>& lengths) const = 0;
  // Where a piece may be cut without a change of its ids: after each first part of this length.
  // The piece's size if nowhere.
  virtual size_t first_part(std::string_view piece) const { return piece.size(); }

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;  // as the file writes the tokens
};

// byte_level: pieces are bytes, which the file writes as byte_level_text().
std::unique_ptr<Model> make_model(const Json& json, bool byte_level, const std::string& where);
// tiktoken's BPE: ranks are ids, a whole piece that has a rank is one token, and a pair may merge
// if its bytes have a rank. tokens: by rank.
std::unique_ptr<Model> make_rank_model(const std::vector<std::string>& tokens,
                                       const std::string& where);

// The member "vocab": an object of tokens and ids.
class PartOptions;
Vocabulary vocabulary_option(const PartOptions& options);

}  // namespace fleet::text
