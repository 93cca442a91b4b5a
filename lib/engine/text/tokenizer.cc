#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/model.h"
#include "text/piece_cache.h"
#include "text/post_processor.h"
#include "text/rank_file.h"
#include "text/text_splitter.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

constexpr int64_t kMostTokenizerBytes = int64_t{1} << 28;
constexpr int kMostTokenizerDepth = 100;

uint64_t next_owner() {
  static std::atomic<uint64_t> count{0};
  return ++count;
}

// The cache of this thread for a tokenizer; a thread that uses more than two fills them again.
PieceCache& thread_cache(uint64_t owner) {
  thread_local std::array<PieceCache, 2> caches;
  thread_local size_t last = 0;
  if (caches[last].owner() == owner) return caches[last];
  last = 1 - last;
  if (caches[last].owner() != owner) caches[last].reset(owner);
  return caches[last];
}

Json member(const Json& file, const char* name) {
  const Json* found = file.find(name);
  return found ? *found : Json();
}

}  // namespace

struct Tokenizer::Parts {
  Parts(TextSplitter text_splitter, Decoder text_decoder)
      : splitter(std::move(text_splitter)), decoder(std::move(text_decoder)) {}

  TextSplitter splitter;
  Decoder decoder;
  std::unique_ptr<Model> model;
  std::unique_ptr<AddedTokens> added;
  PostProcessor post_processor;
  Truncation truncation;
  Padding padding;
  uint64_t owner = next_owner();

  void check_lengths(const std::string& where) const;
  void encode_piece(std::string_view piece, PieceCache& cache, std::vector<uint32_t>& ids) const;
  void encode_text(std::string_view text, bool specials, std::vector<uint32_t>& ids) const;
  void encode_valid(std::string_view text, bool specials, std::vector<uint32_t>& ids) const;
};

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::string& path) {
  const std::string content = read_regular_file(path, kMostTokenizerBytes);
  if (is_rank_file(content)) return from_ranks(content, {}, path);
  return from_json(content, path);
}

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& where) {
  Json file;
  try {
    file = Json::parse(text, [](JsonEvent, int depth, const std::string&) {
      if (depth > kMostTokenizerDepth) throw JsonError("it is nested too deeply");
    });
  } catch (const JsonError& error) {
    std::string reason = error.what();
    // The parser's number of the error says nothing to a user.
    if (reason.starts_with('[')) reason.erase(0, reason.find(' ') + 1);
    throw Error(ErrorCode::kUsage,
                "neither a tokenizer.json nor a rank file of tiktoken: " + reason, where);
  }
  if (!file.is_object() || !file.contains("model")) {
    throw Error(ErrorCode::kUsage, "not a tokenizer.json: it has no member 'model'", where);
  }
  auto parts = std::make_unique<Parts>(
      TextSplitter(member(file, "normalizer"), member(file, "pre_tokenizer"), where),
      Decoder(member(file, "decoder"), where));
  parts->model = make_model(file.at("model"), parts->splitter.byte_level(), where);
  parts->added =
      std::make_unique<AddedTokens>(member(file, "added_tokens"), parts->splitter, where);
  parts->post_processor = PostProcessor(member(file, "post_processor"), where);
  parts->truncation = Truncation(member(file, "truncation"), where);
  parts->padding = Padding(member(file, "padding"), where);
  parts->check_lengths(where);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::from_ranks(std::string_view content, const RankFileSettings& given,
                                const std::string& where) {
  const std::vector<std::string> tokens = read_ranks(content, where);
  RankFileSettings settings = given;
  if (settings.pattern.empty()) {
    const auto known = known_settings(tokens.size());
    if (!known) {
      throw Error(ErrorCode::kUsage,
                  "the rank file has " + std::to_string(tokens.size()) +
                      " ranks, and no known pattern goes with so many",
                  where, "use the tokenizer.json of the same model");
    }
    settings = *known;
  }
  const Json split(
      {{"type", "Sequence"},
       {"pretokenizers",
        Json::array(
            {Json({{"type", "Split"},
                   {"pattern", Json({{"Regex", settings.pattern}})},
                   {"behavior", "Isolated"}}),
             Json({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}})})}});
  auto parts = std::make_unique<Parts>(TextSplitter(Json(), split, where), Decoder::of_bytes());
  parts->model = make_rank_model(tokens, where);
  parts->added =
      std::make_unique<AddedTokens>(std::move(settings.added_tokens), parts->splitter, where);
  return Tokenizer(std::move(parts));
}

void Tokenizer::Parts::check_lengths(const std::string& where) const {
  const size_t around = post_processor.before.size() + post_processor.after.size();
  if (truncation.on && truncation.most < around) {
    throw Error(ErrorCode::kUsage,
                "truncation to " + std::to_string(truncation.most) +
                    " tokens is shorter than the " + std::to_string(around) +
                    " that the post-processor adds",
                where);
  }
}

void Tokenizer::Parts::encode_piece(std::string_view piece, PieceCache& cache,
                                    std::vector<uint32_t>& ids) const {
  while (!piece.empty()) {
    const std::string_view part = piece.substr(0, model->first_part(piece));
    piece.remove_prefix(part.size());
    if (part.size() > PieceCache::kLongestPiece) {
      model->encode(part, ids);
      continue;
    }
    const uint64_t hash = hash_of(part);
    size_t count;
    if (const uint32_t* known = cache.find(part, hash, &count)) {
      ids.insert(ids.end(), known, known + count);
      continue;
    }
    const size_t before = ids.size();
    model->encode(part, ids);
    cache.add(part, hash, std::span(ids).subspan(before));
  }
}

void Tokenizer::Parts::encode_text(std::string_view text, bool specials,
                                   std::vector<uint32_t>& ids) const {
  if (is_valid_utf8(text)) {
    encode_valid(text, specials, ids);
  } else {
    encode_valid(valid_utf8(text), specials, ids);
  }
}

// Added tokens of the raw text, the normalizer between them, added tokens of the normalized text,
// and pieces between those.
void Tokenizer::Parts::encode_valid(std::string_view text, bool specials,
                                    std::vector<uint32_t>& ids) const {
  PieceCache& cache = thread_cache(owner);
  const TextSplitter::Piece encode_one = [&](std::string_view piece) {
    encode_piece(piece, cache, ids);
  };
  const TokenFinder::Token push = [&](const AddedToken& token) { ids.push_back(token.id); };
  const auto encode_normalized = [&](std::string_view normalized, bool first) {
    if (added->normalized().empty()) return splitter.split(normalized, encode_one, first);
    added->normalized().split(
        normalized, specials,
        [&](size_t begin, size_t end) {
          splitter.split(normalized.substr(begin, end - begin), encode_one, first && begin == 0);
        },
        push);
  };
  const auto encode_raw = [&](size_t begin, size_t end) {
    const std::string_view raw = text.substr(begin, end - begin);
    if (splitter.normalizes()) {
      encode_normalized(splitter.normalize(raw), begin == 0 && splitter.begins_input(raw));
    } else {
      encode_normalized(raw, begin == 0);
    }
  };
  if (added->raw().empty()) {
    encode_raw(0, text.size());
  } else {
    added->raw().split(text, specials, encode_raw, push);
  }
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::vector<uint32_t> ids;
  parts_->encode_text(text, true, ids);
  const PostProcessor& around = parts_->post_processor;
  const Truncation& truncation = parts_->truncation;
  if (truncation.on) {
    const size_t most =
        truncation.most - (add_special_tokens ? around.before.size() + around.after.size() : 0);
    if (ids.size() > most) {
      if (truncation.left) ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(most));
      ids.resize(most);
    }
  }
  if (add_special_tokens) {
    ids.insert(ids.begin(), around.before.begin(), around.before.end());
    ids.insert(ids.end(), around.after.begin(), around.after.end());
  }
  const Padding& padding = parts_->padding;
  if (padding.on) {
    size_t length = std::max(ids.size(), padding.length);
    if (padding.multiple > 0)
      length += (padding.multiple - length % padding.multiple) % padding.multiple;
    ids.insert(padding.left ? ids.begin() : ids.end(), length - ids.size(), padding.id);
  }
  return ids;
}

void Tokenizer::encode_ordinary(std::string_view text, std::vector<uint32_t>& ids) const {
  parts_->encode_text(text, true, ids);
}

void Tokenizer::encode_as_text(std::string_view text, std::vector<uint32_t>& ids) const {
  parts_->encode_text(text, false, ids);
}

std::string Tokenizer::decode(std::span<const uint32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const uint32_t id : ids) {
    if (const AddedToken* token = parts_->added->find(id)) {
      if (!token->special || !skip_special_tokens) tokens.push_back(token->content);
      continue;
    }
    const auto token = parts_->model->vocabulary().token(id);
    if (!token) {
      throw Error(ErrorCode::kUsage,
                  "the id " + std::to_string(id) + " is not in the vocabulary of the tokenizer");
    }
    tokens.emplace_back(*token);
  }
  return parts_->decoder.decode(std::move(tokens));
}

size_t Tokenizer::vocabulary_size() const {
  const std::vector<AddedToken>& added = parts_->added->tokens();
  const size_t size = parts_->model->vocabulary().size();
  return added.empty() ? size : std::max<size_t>(size, size_t{added.back().id} + 1);
}

std::optional<uint32_t> Tokenizer::token_id(std::string_view token) const {
  if (const AddedToken* added = parts_->added->find(token)) return added->id;
  return parts_->model->vocabulary().find(token);
}

std::optional<std::string> Tokenizer::token(uint32_t id) const {
  if (const AddedToken* added = parts_->added->find(id)) return added->content;
  const auto token = parts_->model->vocabulary().token(id);
  return token ? std::optional<std::string>(*token) : std::nullopt;
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const { return parts_->added->tokens(); }
const TextSplitter& Tokenizer::splitter() const { return parts_->splitter; }
void Tokenizer::disable_truncation() { parts_->truncation = {}; }
void Tokenizer::disable_padding() { parts_->padding = {}; }

}  // namespace fleet::text
