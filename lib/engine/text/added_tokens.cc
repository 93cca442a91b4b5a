#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/code_point_set.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace fleet::text {
namespace {

bool word_ends_at(std::string_view text, size_t at) {
  if (at == 0) return false;
  size_t next;
  return word_characters().contains(code_point_at(text, previous_character(text, at), &next));
}

bool word_begins_at(std::string_view text, size_t at) {
  size_t next;
  return at < text.size() && word_characters().contains(code_point_at(text, at, &next));
}

size_t white_space_before(std::string_view text, size_t at, size_t least) {
  while (at > least) {
    size_t next;
    const size_t before = previous_character(text, at);
    if (!white_space().contains(code_point_at(text, before, &next))) break;
    at = before;
  }
  return std::max(at, least);
}

size_t white_space_after(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t next;
    if (!white_space().contains(code_point_at(text, at, &next))) break;
    at = next;
  }
  return at;
}

bool added_flag(const Json& json, const char* key, const std::string& where) {
  const Json* value = json.find(key);
  if (!value) return false;
  if (!value->is_boolean()) {
    throw Error(ErrorCode::kUsage,
                std::string("the member '") + key + "' of an added token must be true or false",
                where);
  }
  return value->get<bool>();
}

AddedToken added_token(const Json& json, const std::string& where) {
  const Json* content = json.find("content");
  const Json* id = json.find("id");
  if (!content || !content->is_string() || !id || !id->is_number_integer() ||
      id->get<int64_t>() < 0 || id->get<int64_t>() >= kMostIds) {
    throw Error(ErrorCode::kUsage,
                "an added token must have a content and an id below " + std::to_string(kMostIds),
                where);
  }
  AddedToken token;
  token.content = content->get<std::string>();
  token.id = static_cast<uint32_t>(id->get<int64_t>());
  token.special = added_flag(json, "special", where);
  token.single_word = added_flag(json, "single_word", where);
  token.lstrip = added_flag(json, "lstrip", where);
  token.rstrip = added_flag(json, "rstrip", where);
  token.normalized = added_flag(json, "normalized", where);
  return token;
}

}  // namespace

void TokenFinder::add(std::string_view content, const AddedToken* token) {
  if (content.empty()) return;
  begins_[static_cast<unsigned char>(content[0])] = true;
  uint32_t node = 0;
  for (const char c : content) {
    const auto byte = static_cast<unsigned char>(c);
    auto& next = nodes_[node].next;
    const auto at = std::lower_bound(next.begin(), next.end(), std::pair(byte, uint32_t{0}));
    if (at != next.end() && at->first == byte) {
      node = at->second;
    } else {
      node = static_cast<uint32_t>(nodes_.size());
      next.insert(at, {byte, node});
      nodes_.emplace_back();
    }
  }
  nodes_[node].token = token;
}

const AddedToken* TokenFinder::longest_at(std::string_view text, size_t at, size_t* end) const {
  const AddedToken* longest = nullptr;
  uint32_t node = 0;
  for (; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto& next = nodes_[node].next;
    const auto found = std::lower_bound(next.begin(), next.end(), std::pair(byte, uint32_t{0}));
    if (found == next.end() || found->first != byte) break;
    node = found->second;
    if (nodes_[node].token) {
      longest = nodes_[node].token;
      *end = at + 1;
    }
  }
  return longest;
}

// find_matches() in tokenizers/src/tokenizer/added_vocabulary.rs of Hugging Face's tokenizers.
void TokenFinder::split(std::string_view text, bool specials, const Text& between,
                        const Token& emit) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    const AddedToken* token =
        begins_[static_cast<unsigned char>(text[at])] ? longest_at(text, at, &end) : nullptr;
    if (!token) {
      ++at;
      continue;
    }
    const size_t begin = at;
    at = end;
    if (token->special && !specials) continue;
    if (token->single_word && (word_ends_at(text, begin) || word_begins_at(text, end))) continue;
    const size_t start = token->lstrip ? white_space_before(text, begin, done) : begin;
    if (token->rstrip) at = end = white_space_after(text, end);
    if (start > done) between(done, start);
    emit(*token, start, end);
    done = end;
  }
  if (done < text.size()) between(done, text.size());
}

AddedTokens::AddedTokens(const Json& json, const TextSplitter& splitter, const std::string& where) {
  if (!json.is_null()) {
    if (!json.is_array()) {
      throw Error(ErrorCode::kUsage, "'added_tokens' must be an array", where);
    }
    for (const Json& token : json.elements()) tokens_.push_back(added_token(token, where));
  }
  index(splitter, where);
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const TextSplitter& splitter,
                         const std::string& where)
    : tokens_(std::move(tokens)) {
  index(splitter, where);
}

void AddedTokens::index(const TextSplitter& splitter, const std::string& where) {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  for (size_t i = 1; i < tokens_.size(); ++i) {
    if (tokens_[i].id == tokens_[i - 1].id) {
      throw Error(ErrorCode::kUsage,
                  "two added tokens have the id " + std::to_string(tokens_[i].id), where);
    }
  }
  for (const AddedToken& token : tokens_) {
    by_content_[token.content] = &token;
    if (token.normalized) {
      normalized_.add(splitter.normalize(token.content), &token);
    } else {
      raw_.add(token.content, &token);
    }
  }
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : found->second;
}

const AddedToken* AddedTokens::find(uint32_t id) const {
  const auto found =
      std::lower_bound(tokens_.begin(), tokens_.end(), id,
                       [](const AddedToken& token, uint32_t wanted) { return token.id < wanted; });
  return found != tokens_.end() && found->id == id ? &*found : nullptr;
}

}  // namespace fleet::text
