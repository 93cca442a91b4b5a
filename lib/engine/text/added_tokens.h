// The section "added_tokens" of a tokenizer.json: tokens that are found in a text before the model
// sees it. Some are looked for in the raw text, then the others in the normalized one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_splitter.h"
#include "text/tokenizer.h"

namespace fleet::text {

// Finds the leftmost, then longest of some tokens.
class TokenFinder {
 public:
  void add(std::string_view content, const AddedToken* token);
  bool empty() const { return nodes_.size() == 1; }

  // Calls in order: text(begin, end) for the text between tokens, and token(..) for tokens, with
  // the white space that they take.
  // specials: whether special tokens are looked for.
  using Text = std::function<void(size_t begin, size_t end)>;
  using Token = std::function<void(const AddedToken& token, size_t begin, size_t end)>;
  void split(std::string_view text, bool specials, const Text& between, const Token& token) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> next;  // sorted
    const AddedToken* token = nullptr;
  };
  const AddedToken* longest_at(std::string_view text, size_t at, size_t* end) const;

  std::vector<Node> nodes_{1};
  bool begins_[256] = {};  // by byte
};

// Const member functions may be called by several threads at once.
class AddedTokens {
 public:
  // json: an array, or null. Errors as those of Tokenizer::from_json().
  AddedTokens(const Json& json, const TextSplitter& splitter, const std::string& where);
  AddedTokens(std::vector<AddedToken> tokens, const TextSplitter& splitter,
              const std::string& where);
  AddedTokens(const AddedTokens&) = delete;  // the finders point into it
  AddedTokens& operator=(const AddedTokens&) = delete;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find(std::string_view content) const;
  const AddedToken* find(uint32_t id) const;
  const TokenFinder& raw() const { return raw_; }
  const TokenFinder& normalized() const { return normalized_; }

 private:
  void index(const TextSplitter& splitter, const std::string& where);

  std::vector<AddedToken> tokens_;  // by id
  std::map<std::string, const AddedToken*, std::less<>> by_content_;
  TokenFinder raw_, normalized_;
};

}  // namespace fleet::text
