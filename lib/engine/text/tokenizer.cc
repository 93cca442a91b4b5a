#include "text/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "text/bert_vocabulary.h"
#include "text/rank_file.h"
#include "text/tokenizer_parts.h"

namespace fleet::text {
namespace {

constexpr int64_t kMostTokenizerBytes = int64_t{1} << 28;
constexpr int kMostTokenizerDepth = 100;

Json member(const Json& file, const char* name) {
  const Json* found = file.find(name);
  return found ? *found : Json();
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

namespace {

Json parsed(std::string_view text, const std::string& where, const char* what) {
  try {
    return Json::parse(text, [](JsonEvent, int depth, const std::string&) {
      if (depth > kMostTokenizerDepth) throw JsonError("it is nested too deeply");
    });
  } catch (const JsonError& error) {
    std::string reason = error.what();
    // The parser's number of the error says nothing to a user.
    if (reason.starts_with('[')) reason.erase(0, reason.find(' ') + 1);
    throw Error(ErrorCode::kUsage, what + reason, where);
  }
}

}  // namespace

std::string tokenizer_path(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown)) return path;
  const std::string file = path + "/tokenizer.json", old = path + "/vocab.txt";
  const bool is_old =
      !std::filesystem::exists(file, unknown) && std::filesystem::exists(old, unknown);
  return is_old ? old : file;
}

Tokenizer Tokenizer::load(const std::string& given) {
  const std::string path = tokenizer_path(given);
  const std::string content = read_regular_file(path, kMostTokenizerBytes);
  const std::filesystem::path name(path);
  if (name.filename() == "vocab.txt") {
    const std::string config = name.parent_path() / "tokenizer_config.json";
    std::error_code unknown;
    const Json settings =
        std::filesystem::exists(config, unknown)
            ? parsed(read_regular_file(config, kMostTokenizerBytes), config, "not JSON: ")
            : Json();
    return from_file(bert_tokenizer(content, settings, path), path);
  }
  if (is_rank_file(content)) return from_ranks(content, {}, path);
  return from_json(content, path);
}

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& where) {
  return from_file(parsed(text, where, "neither a tokenizer.json nor a rank file of tiktoken: "),
                   where);
}

Tokenizer Tokenizer::from_file(const Json& file, const std::string& where) {
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
  const size_t around = PostProcessor::added(post_processor.single);
  if (truncation.on && truncation.to.most < around) {
    throw Error(ErrorCode::kUsage,
                "truncation to " + std::to_string(truncation.to.most) +
                    " tokens is shorter than the " + std::to_string(around) +
                    " that the post-processor adds",
                where);
  }
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  EncodeOptions options;
  options.special_tokens = add_special_tokens;
  std::vector<uint32_t> ids = encode(text, options).ids;
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
